//! Five agents and three commands through faults that used to cost leases, through the real binary:
//! the process is stopped, the clock is set, the database is locked by somebody else; alone, beside
//! another process of this machine, and beside one that cannot see whether the first still lives.
//!
//! `CODESPAR_LEASE_RUNS=20 CODESPAR_LEASE_SECONDS=30 cargo test -p codespar --test leases` does
//! each of them twenty times, with faults of half a minute.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod leaving;
mod taking_over;
mod world;

use faults::Fault;
use world::{Second, World};

/// Goes through each case, all of them side by side: they mostly wait.
fn through(cases: &[(Fault, Second)]) {
    std::thread::scope(|scope| {
        for &(fault, second) in cases {
            scope.spawn(move || {
                for run in 1..=world::runs() {
                    eprintln!("{fault:?}, {second:?}: run {run}");
                    let mut world = World::start(fault);
                    world.with(second);
                    fault.happen(&world);
                    world.open_the_gate();
                    world.finished().all_is_well();
                }
            });
        }
    });
}

#[test]
fn a_process_that_was_stopped_keeps_its_tasks() {
    let fault = Fault::Stopped;
    through(&[(fault, Second::None), (fault, Second::InSight)]);
}

#[test]
fn a_clock_that_is_set_costs_nothing() {
    let (forward, back) = (Fault::Clock("+30s"), Fault::Clock("-3600s"));
    through(&[
        (forward, Second::None),
        (forward, Second::OutOfSight),
        (back, Second::None),
        (back, Second::OutOfSight),
    ]);
}

#[test]
fn a_locked_database_costs_nothing() {
    let fault = Fault::LockedDatabase;
    through(&[
        (fault, Second::None),
        (fault, Second::InSight),
        (fault, Second::OutOfSight),
    ]);
}
