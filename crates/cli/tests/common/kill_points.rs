//! Points between the receipt of a message and the last edit at which a process is killed.

/// The variable that names the point, and the point.
pub(crate) const POINTS: [(&str, &str); 30] = [
    ("AT", "received"),
    ("AT", "begun"),
    ("AT", "started"),
    ("AT", "drawn"),
    ("AT", "drawn:2"),
    ("AT", "drawn:5"),
    ("AT", "drawn:9"),
    ("AT", "sending"),
    ("AT", "posted"),
    ("AT", "sent"),
    ("AT", "sending:2"),
    ("AT", "posted:2"),
    ("AT", "sent:2"),
    ("AT", "sending:3"),
    ("AT", "posted:3"),
    ("AT", "sent:4"),
    ("AT", "settled"),
    ("AFTER", "simulated"),
    ("AFTER", "base"),
    ("AFTER", "answer-pick"),
    ("AFTER", "locate"),
    ("AFTER", "read"),
    ("AFTER", "answer-write-1"),
    ("AFTER", "before"),
    ("AFTER", "after-1"),
    ("AFTER", "made proven"),
    ("AFTER", "proven"),
    ("AFTER", "commit"),
    ("AFTER", "pull_request"),
    ("AFTER", "report"),
];

/// The same for a platform: where a message comes in, where each of ours goes out, and some of what
/// is done in between. A platform that keeps no place of its own has nothing to note.
pub(crate) const PLATFORM_POINTS: [(&str, &str); 30] = [
    ("AT", "arrived"),
    ("AT", "received"),
    ("AT", "noted"),
    ("AT", "begun"),
    ("AT", "started"),
    ("AT", "drawn"),
    ("AT", "drawn:2"),
    ("AT", "drawn:5"),
    ("AT", "sending"),
    ("AT", "posted"),
    ("AT", "sent"),
    ("AT", "sending:2"),
    ("AT", "posted:2"),
    ("AT", "sent:2"),
    ("AT", "sending:3"),
    ("AT", "posted:3"),
    ("AT", "sent:3"),
    ("AT", "settled"),
    ("AFTER", "base"),
    ("AFTER", "answer-pick"),
    ("AFTER", "locate"),
    ("AFTER", "read"),
    ("AFTER", "answer-write-1"),
    ("AFTER", "before"),
    ("AFTER", "after-1"),
    ("AFTER", "made proven"),
    ("AFTER", "proven"),
    ("AFTER", "commit"),
    ("AFTER", "pull_request"),
    ("AFTER", "report"),
];

/// Dies at each of the points, some at a time: most of the time each waits for the lease of the dead
/// process.
pub(crate) fn at_each(points: &[(&str, &str)], dies: impl Fn(&str, &str) + Sync) {
    for some in points.chunks(6) {
        std::thread::scope(|scope| {
            for (variable, point) in some {
                scope.spawn(|| dies(variable, point));
            }
        });
    }
}
