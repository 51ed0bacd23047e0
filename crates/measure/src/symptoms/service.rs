//! The target and the servers behind it as one service: what one of them takes from another is
//! taken by no other process.

use super::Figures;
use crate::facts::CpuUse;
use crate::interval::per;
use crate::observation::ProgramUse;

/// From this share of the CPUs that they have in common on nothing of them is left.
const USED_UP: f64 = 0.95;

/// Servers that have used up the CPUs that they have in common.
pub(crate) struct ServiceCpuUsedUp {
    /// Their positions among the observed programs, that of the target first.
    pub(crate) programs: Vec<usize>,
    /// CPUs' worth of time that they used together.
    pub(crate) used: f64,
    /// What they may use.
    pub(crate) allowed: f64,
}

pub(super) fn cpu_used_up(figures: &Figures<'_>) -> Option<ServiceCpuUsedUp> {
    let programs = sharing_cpus(figures);
    let allowed = programs
        .first()
        .and(figures.programs.first()?.cpus_allowed)?;
    let used = programs.iter().map(|it| figures.programs[*it].cpus_used);
    let used = used.sum::<f64>();
    (per(used, allowed) >= USED_UP).then_some(ServiceCpuUsedUp {
        programs,
        used,
        allowed,
    })
}

/// The target and the servers behind it that may use the same CPUs, without a quota of their own;
/// none if the target has its CPUs for itself.
pub(super) fn sharing_cpus(figures: &Figures<'_>) -> Vec<usize> {
    let cpus = figures.programs.first().and_then(ProgramUse::cpus);
    let shares = |(position, it): &(usize, &ProgramUse<'_>)| {
        let is_of_service = *position == 0 || it.is_server();
        is_of_service && cpus.is_some() && it.cpus() == cpus && it.throttled_share.is_none()
    };
    let sharing = figures.programs.iter().enumerate().filter(shares);
    let sharing: Vec<usize> = sharing.map(|(position, _)| position).collect();
    match sharing.first() == Some(&0) && sharing.len() > 1 {
        true => sharing,
        false => Vec::new(),
    }
}

/// Whose the CPU time of the generator's host was, without that of servers behind the target.
pub(crate) fn others_on_host(figures: &Figures<'_>) -> Option<CpuUse> {
    let host = figures.record.host_use.as_ref()?;
    let mut others = host.clone();
    let behind = figures.programs.iter().skip(1);
    for program in behind.filter(|it| it.is_server()) {
        let is_it = |pid: u32| program.process_id() == Some(pid);
        let known = host.busiest.iter().find(|it| is_it(it.pid));
        let of_window = (program.cpus_used * host.wall_ns as f64) as u64;
        let used_ns = known.map_or(of_window, |it| it.cpu_ns.max(of_window));
        others.others_ns = others.others_ns.saturating_sub(used_ns);
        others.busiest.retain(|it| !is_it(it.pid));
    }
    Some(others)
}
