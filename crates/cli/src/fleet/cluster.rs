//! The fleet in Kubernetes that this command has made: once, for all its runs, and removed at its
//! end. If the command is killed, the run goes on in the cluster, and is followed by its name.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lab::kubernetes::{Fleet, Options, State, label};
use lab::parts::make_keys;
use measure::RunRecord;
use settings::Kubernetes;

use crate::failure::Failure;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// A fleet that is there.
struct Made {
    asked: Kubernetes,
    fleet: Fleet,
    /// The command that reaches its lead.
    lead: String,
    began: Instant,
}

static MADE: Mutex<Option<Made>> = Mutex::new(None);

fn made() -> MutexGuard<'static, Option<Made>> {
    // Nothing panics while it is held.
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where these groups ask for a fleet in Kubernetes, that is there now, and they name its lead.
///
/// # Errors
/// The cluster does not do what it takes: no rights, no image, no room. Nothing is left then.
pub(crate) fn settle(groups: &mut [Group], interrupt: &Interrupt) -> Result<(), Failure> {
    let generator = &groups[0].run.generator;
    let (None, Some(asked)) = (&generator.lead, generator.kubernetes.clone()) else {
        return Ok(());
    };
    let is_quiet = groups[0].output.quiet;
    let lead = lead_of(asked, is_quiet, interrupt)?;
    for group in groups {
        group.run.generator.lead = Some(lead.clone());
    }
    Ok(())
}

fn lead_of(asked: Kubernetes, is_quiet: bool, interrupt: &Interrupt) -> Result<String, Failure> {
    if let Some(made) = &*made()
        && made.asked == asked
    {
        return Ok(made.lead.clone());
    }
    remove();
    let options = options(&asked)?;
    Fleet::check_rights(asked.namespace.as_deref())?;
    let fleet = Fleet::start(&options, &make_keys()?)?;
    if !is_quiet {
        tell!(
            "fleet `{}` of {} agents in namespace `{}`",
            fleet.name(),
            asked.agents,
            fleet.namespace()
        );
    }
    let began = Instant::now();
    let pod = fleet.wait_for_lead(&mut || interrupt.has_come());
    let pod = pod.inspect_err(|_| take_away(&fleet))?;
    let lead = lead_command(&fleet, &pod);
    *made() = Some(Made {
        asked,
        fleet,
        lead: lead.clone(),
        began,
    });
    Ok(lead)
}

/// The command that reaches the lead in that pod.
pub(super) fn lead_command(fleet: &Fleet, pod: &lab::kubernetes::PodName) -> String {
    let relay = fleet.relay(pod);
    let words = std::iter::once(&relay.program).chain(&relay.words);
    let words: Vec<String> = words.map(|it| it.to_string_lossy().into_owned()).collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

pub(super) fn options(asked: &Kubernetes) -> Result<Options, Failure> {
    let random = lab::host::random_name();
    let name = format!("throng-{}", &random[..random.len().min(8)]);
    let labels = |texts: &[String]| {
        texts
            .iter()
            .map(|it| label(it))
            .collect::<Result<Vec<_>, _>>()
    };
    let options = Options {
        namespace: asked.namespace.clone(),
        agents_min: asked.agents_min.unwrap_or(asked.agents),
        cpus: f64::from(asked.cpus_milli) / 1_000.0,
        memory: asked.memory.clone(),
        node_selector: labels(&asked.node_selector)?.into_iter().collect(),
        tolerations: (asked.tolerations.iter())
            .map(|it| it.parse())
            .collect::<Result<_, _>>()?,
        host_network: asked.host_network,
        away_from: labels(&asked.away_from)?,
        ..Options::new(&name, asked.agents, &asked.image)
    };
    options.check()?;
    Ok(options)
}

/// Leaves the fleet to itself: it stays when this command ends. Its name and namespace.
pub(super) fn leave() -> Option<(String, String)> {
    let made = made().take()?;
    Some((
        made.fleet.name().to_owned(),
        made.fleet.namespace().to_owned(),
    ))
}

/// Why it is hopeless to wait for the agents of that lead any longer; none if it is not, or the
/// lead is of no fleet that this command has made.
pub(super) fn is_hopeless(lead: &str) -> Option<String> {
    let made = made();
    let made = made.as_ref().filter(|made| made.lead == lead)?;
    let look = made.fleet.look().ok()?;
    look.is_hopeless(made.began.elapsed()).then(|| {
        look.why()
            .unwrap_or_else(|| "its pods have ended".to_owned())
    })
}

/// True if no more agents of that lead will come.
pub(super) fn is_settled(lead: &str) -> bool {
    let made = made();
    let made = made.as_ref().filter(|made| made.lead == lead);
    let settled = made.and_then(|made| {
        let look = made.fleet.look().ok()?;
        Some(look.is_settled(made.began.elapsed()))
    });
    settled.unwrap_or_default()
}

/// Why nothing more comes of that lead; none if it runs, or nobody knows.
pub(super) fn why_lost(lead: &str) -> Option<String> {
    let made = made();
    let made = made.as_ref().filter(|made| made.lead == lead)?;
    let look = made.fleet.look().ok()?;
    match look.lead.map(|lead| lead.state) {
        None => Some("its pod is not there any more".to_owned()),
        Some(State::Runs | State::Starts) => None,
        Some(state) => Some(state.why().unwrap_or("it has ended").to_owned()),
    }
}

/// What keeps agents away so far.
pub(super) fn why_waiting(lead: &str) -> Option<String> {
    let made = made();
    let made = made.as_ref().filter(|made| made.lead == lead)?;
    made.fleet.look().ok()?.why()
}

/// Notes in the record of a run by that lead which agents have shared a node with the target.
pub(super) fn note_neighbours(lead: &str, record: &mut RunRecord) {
    let made = made();
    let Some(made) = made.as_ref().filter(|made| made.lead == lead) else {
        return;
    };
    let address = |text: &str| match text.parse::<SocketAddr>() {
        Ok(address) => Some(address.ip()),
        Err(_) => text.parse::<IpAddr>().ok(),
    };
    let targets = record.groups.iter().map(|group| &group.scenario.target);
    let mut targets: Vec<IpAddr> = targets.filter_map(|it| address(it)).collect();
    targets.dedup();
    if let Ok(look) = made.fleet.look() {
        record
            .warnings
            .extend(made.fleet.shares_node(&look, &targets));
    }
}

/// Removes the fleet that this command has made.
pub(crate) fn remove() {
    let made = made().take();
    if let Some(made) = made {
        take_away(&made.fleet);
    }
}

fn take_away(fleet: &Fleet) {
    if let Err(error) = fleet.remove() {
        tell!(
            "warning: fleet `{}` is still in namespace `{}`: {error:#}",
            fleet.name(),
            fleet.namespace()
        );
    }
}
