//! The checks of a host in the order of their output.

use super::{Aim, Diagnosis, HostReading, connections, files, interface, kernel, processor};

/// Judges a host by its planned load.
pub fn of_host(host: &HostReading, aim: Aim) -> Vec<Diagnosis> {
    let mut all = vec![
        files::open_files(host, aim),
        files::memory(host, aim),
        connections::ports(host, aim),
        connections::time_wait(host, aim),
        connections::conntrack(host, aim),
        connections::listen_queue(host, aim),
        kernel::receive_buffers(host),
        kernel::send_buffers(host),
        kernel::udp_memory(host),
        kernel::backlog(host),
        kernel::busy_polling(host, aim),
        kernel::congestion_control(host, aim),
        kernel::io_uring(host),
        processor::governor(host),
        processor::second_threads(host),
        processor::quota(host),
        processor::steal(host),
        processor::other_load(host),
        processor::clock(host),
    ];
    if host.interfaces.is_empty() {
        all.push(interface::none());
    }
    for each in &host.interfaces {
        all.push(interface::queues(host, each));
        all.push(interface::drops(each));
        all.push(interface::offloads(each));
    }
    all
}
