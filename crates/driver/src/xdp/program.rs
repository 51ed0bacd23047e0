//! The filter: a short eBPF program, assembled here, that redirects our datagrams from the
//! interface. Everything else passes to the kernel unchanged.
//!
//! A frame is ours if it is Ethernet, without a tag or with that of our VLAN (cards strip tags),
//! carries IPv4 without options and fragments or IPv6 without extension headers, then UDP, and its
//! destination port is marked in a table. It is redirected to the socket of the queue that received
//! it; where there is none, and for all that is not ours, the program says XDP_PASS. 63
//! instructions, of which the longest path takes 45.

use std::os::fd::RawFd;

/// XDP_PASS of linux/bpf.h.
const PASS: i32 = 2;

// Offsets in `struct xdp_md`, the program's one argument (linux/bpf.h).
const CONTEXT_DATA: i16 = 0;
const CONTEXT_DATA_END: i16 = 4;
const CONTEXT_QUEUE: i16 = 16;

// Functions of the kernel by number (linux/bpf.h).
const MAP_LOOKUP_ELEM: i32 = 1;
const REDIRECT_MAP: i32 = 51;

/// What a load or a comparison of two octets in network order has to be compared with.
const fn network_order(value: u16) -> i32 {
    value.to_be() as i32
}

/// One instruction, as `struct bpf_insn` has it (linux/bpf.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    code: u8,
    /// Destination in the low four bits, source in the high ones.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register of the machine.
#[derive(Clone, Copy)]
struct Register(u8);

const R0: Register = Register(0);
const R1: Register = Register(1);
const R2: Register = Register(2);
const R3: Register = Register(3);
const R4: Register = Register(4);
const R5: Register = Register(5);
/// Kept over calls.
const R6: Register = Register(6);
/// The frame pointer.
const R10: Register = Register(10);

/// How many octets a load or store moves, as its instruction says it.
#[derive(Clone, Copy)]
enum Width {
    One = 0x10,
    Two = 0x08,
    Four = 0x00,
}

/// When a jump is taken.
#[derive(Clone, Copy)]
enum Condition {
    Equal = 0x10,
    Greater = 0x20,
    NotEqual = 0x50,
}

/// A place to jump to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Network,
    Ipv4,
    Port,
    Pass,
}

/// Collects instructions; jumps go forward only.
#[derive(Default)]
struct Assembler {
    code: Vec<Instruction>,
    /// Jumps whose label is still to come.
    open: Vec<(usize, Label)>,
}

impl Assembler {
    fn push(&mut self, code: u8, (to, from): (Register, Register), offset: i16, immediate: i32) {
        self.code.push(Instruction {
            code,
            registers: from.0 << 4 | to.0,
            offset,
            immediate,
        });
    }

    fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, (to, from), 0, 0);
    }

    fn set(&mut self, to: Register, value: i32) {
        self.push(0xb7, (to, R0), 0, value);
    }

    fn add(&mut self, to: Register, value: i32) {
        self.push(0x07, (to, R0), 0, value);
    }

    fn and(&mut self, to: Register, value: i32) {
        self.push(0x57, (to, R0), 0, value);
    }

    /// Two octets in network order become a number.
    fn turn_around(&mut self, register: Register) {
        self.push(0xdc, (register, R0), 0, 16);
    }

    fn load(&mut self, to: Register, width: Width, (base, offset): (Register, i16)) {
        self.push(0x61 | width as u8, (to, base), offset, 0);
    }

    fn store(&mut self, (base, offset): (Register, i16), width: Width, from: Register) {
        self.push(0x63 | width as u8, (base, from), offset, 0);
    }

    /// The address of a map, which takes the room of two instructions.
    fn load_map(&mut self, to: Register, map: RawFd) {
        const PSEUDO_MAP_FD: Register = Register(1);
        self.push(0x18, (to, PSEUDO_MAP_FD), 0, map);
        self.push(0, (R0, R0), 0, 0);
    }

    fn call(&mut self, function: i32) {
        self.push(0x85, (R0, R0), 0, function);
    }

    fn exit(&mut self) {
        self.push(0x95, (R0, R0), 0, 0);
    }

    fn jump(&mut self, label: Label) {
        self.open.push((self.code.len(), label));
        self.push(0x05, (R0, R0), 0, 0);
    }

    fn jump_if(&mut self, register: Register, condition: Condition, value: i32, label: Label) {
        self.open.push((self.code.len(), label));
        self.push(0x05 | condition as u8, (register, R0), 0, value);
    }

    fn jump_if_register(
        &mut self,
        (left, condition, right): (Register, Condition, Register),
        label: Label,
    ) {
        self.open.push((self.code.len(), label));
        self.push(0x0d | condition as u8, (left, right), 0, 0);
    }

    /// Binds `label` to this position.
    fn place(&mut self, label: Label) {
        let here = self.code.len();
        let code = &mut self.code;
        self.open.retain(|&(jump, to)| {
            if to == label {
                code[jump].offset = (here - jump - 1) as i16;
            }
            to != label
        });
    }

    /// Leaves the program unless `octets` follow `base`.
    fn require(&mut self, base: Register, octets: i32) {
        self.copy(R4, base);
        self.add(R4, octets);
        self.jump_if_register((R4, Condition::Greater, R3), Label::Pass);
    }
}

/// The filter, for a table of marked ports (65,536 entries of four octets) and a map of the
/// sockets by queue. Tags of other VLANs than `vlan` are not ours.
pub(super) fn filter(ports: RawFd, sockets: RawFd, vlan: Option<u16>) -> Vec<Instruction> {
    let mut it = Assembler::default();
    // r2 walks through the frame, r3 is its end, r5 the value being checked.
    it.copy(R6, R1);
    it.load(R2, Width::Four, (R6, CONTEXT_DATA));
    it.load(R3, Width::Four, (R6, CONTEXT_DATA_END));
    it.require(R2, 14);
    it.load(R5, Width::Two, (R2, 12));
    it.add(R2, 14);
    it.jump_if(
        R5,
        Condition::NotEqual,
        network_order(0x8100),
        Label::Network,
    );
    it.require(R2, 4);
    it.load(R5, Width::Two, (R2, 0));
    it.and(R5, network_order(0x0fff));
    // A tag of VLAN 0 has a priority only.
    it.jump_if(
        R5,
        Condition::NotEqual,
        network_order(vlan.unwrap_or(0)),
        Label::Pass,
    );
    it.load(R5, Width::Two, (R2, 2));
    it.add(R2, 4);
    it.place(Label::Network);
    it.jump_if(R5, Condition::Equal, network_order(0x0800), Label::Ipv4);
    it.jump_if(R5, Condition::NotEqual, network_order(0x86dd), Label::Pass);
    it.require(R2, 48);
    it.load(R5, Width::One, (R2, 6));
    it.jump_if(R5, Condition::NotEqual, libc::IPPROTO_UDP, Label::Pass);
    it.load(R5, Width::Two, (R2, 42));
    it.jump(Label::Port);
    it.place(Label::Ipv4);
    it.require(R2, 28);
    it.load(R5, Width::One, (R2, 0));
    it.jump_if(R5, Condition::NotEqual, 0x45, Label::Pass);
    it.load(R5, Width::One, (R2, 9));
    it.jump_if(R5, Condition::NotEqual, libc::IPPROTO_UDP, Label::Pass);
    // More fragments follow, or this is not the first.
    it.load(R5, Width::Two, (R2, 6));
    it.and(R5, network_order(0x3fff));
    it.jump_if(R5, Condition::NotEqual, 0, Label::Pass);
    it.load(R5, Width::Two, (R2, 22));
    it.place(Label::Port);
    it.turn_around(R5);
    it.store((R10, -4), Width::Four, R5);
    it.load_map(R1, ports);
    it.copy(R2, R10);
    it.add(R2, -4);
    it.call(MAP_LOOKUP_ELEM);
    it.jump_if(R0, Condition::Equal, 0, Label::Pass);
    it.load(R0, Width::Four, (R0, 0));
    it.jump_if(R0, Condition::Equal, 0, Label::Pass);
    it.load_map(R1, sockets);
    it.load(R2, Width::Four, (R6, CONTEXT_QUEUE));
    it.set(R3, PASS);
    it.call(REDIRECT_MAP);
    it.exit();
    it.place(Label::Pass);
    it.set(R0, PASS);
    it.exit();
    it.code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_goes_forward_and_stays_within_the_program() {
        let code = filter(3, 4, Some(100));
        for (place, it) in code.iter().enumerate() {
            let is_jump = it.code & 0x07 == 0x05 && !matches!(it.code, 0x85 | 0x95);
            if is_jump {
                assert!(it.offset > 0, "{place}: {it:?}");
                assert!(
                    place + 1 + (it.offset as usize) < code.len(),
                    "{place}: {it:?}"
                );
            }
        }
        assert_eq!(code.last().map(|it| it.code), Some(0x95));
    }
}
