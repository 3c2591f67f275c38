//! Another process takes agents over from one that is stopped and that it cannot see.

use crate::{
    common,
    faults::{self, Fault},
    world::{self, AGENTS, Second, World},
};

#[test]
fn agents_taken_over_from_a_stopped_process_go_on_and_the_first_ends_quietly() {
    for _ in 0..world::runs() {
        let mut world = World::start(Fault::Stopped);
        world.with(Second::OutOfSight);
        faults::stop_outside_of_a_transaction(&world);
        world.wait_until("agents are taken over", |world| {
            world.taken_over() >= AGENTS as i64
        });
        // They wait for their conversations, which the stopped process holds: more than once.
        std::thread::sleep(faults::duration() / 3);
        faults::go_on(world.pid());
        world.open_the_gate();
        let result = world.finished();
        result.nothing_failed_and_nothing_was_doubled();
        assert_eq!(result.entries_with("in use by another process"), 0);
    }
}

#[test]
fn agents_taken_over_from_a_stopped_process_that_then_dies_go_on() {
    let mut world = World::start(Fault::Stopped);
    world.with(Second::OutOfSight);
    faults::stop_outside_of_a_transaction(&world);
    world.wait_until("agents are taken over", |world| {
        world.taken_over() >= AGENTS as i64
    });
    let second = world.second.take().unwrap();
    let bench = world.killed();
    bench.file("gate", "");
    // This one can see that the first is gone, and with it the commands.
    let third = bench.start(&["worker", "--until-idle"]);
    second.wait(common::PATIENCE).unwrap();
    third.wait(common::PATIENCE).unwrap();
    let tasks = common::parsed(&bench.run(&["task", "list", "--json"]).stdout);
    for task in tasks["tasks"].as_array().unwrap() {
        if task["task_type"] == "local_bash" {
            let error = task["error"].as_str().unwrap();
            assert!(
                error.starts_with("lost: the process that ran it"),
                "{error}"
            );
        } else {
            assert_eq!(task["status"], "completed", "{task:#}");
        }
    }
}
