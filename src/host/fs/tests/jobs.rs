//! Bounds of requests, and how they are stopped.

use std::io::{Seek as _, SeekFrom};

use super::*;

/// Reading the holes would take hours.
#[cfg(target_os = "linux")]
#[test]
fn the_holes_of_a_sparse_file_are_not_read() {
    let rig = rig();
    let mut file = fs::File::create(rig.root.join("sparse")).unwrap();
    file.set_len(8 << 40).unwrap();
    let read =
        |line, limit| rig.done(rig.job("sparse", FileOp::Read { line: Some(line), limit: Some(limit) }));
    assert_eq!(read(2, 1).unwrap().unwrap(), "");
    file.seek(SeekFrom::Start(6 << 40)).unwrap();
    file.write_all(b"\nsecond\nthird\n").unwrap();
    assert_eq!(read(2, 1).unwrap().unwrap(), "second\n");
    assert_eq!(read(3, 0).unwrap().unwrap(), "");
    assert!(read(1, 1).unwrap_err().message.contains("limit is 32 MiB"));
}

#[test]
fn the_part_before_a_line_is_bounded() {
    let rig = rig();
    fs::write(rig.root.join("f"), "x".repeat(1 << 20) + "\nlast\n").unwrap();
    let rooted = rooted_path::locate(&rig.root.join("f"), std::slice::from_ref(&rig.root)).unwrap();
    let (file, _) = read::open(&rooted).unwrap();
    let window = lines::Window::new(Some(2), None);
    let find = |max_skipped, stop: &Stop| lines::find_line(&file, window, max_skipped, stop);
    assert_eq!(find(1 << 21, &Stop::default()).unwrap(), Some((1 << 20) + 1));
    assert!(matches!(find(1 << 19, &Stop::default()), Err(FsError::TooFar)));
}

#[test]
fn stopped_requests_read_and_write_nothing() {
    let rig = rig();
    fs::write(rig.root.join("f"), "old").unwrap();
    let write = || rig.job("f", FileOp::Write { content: "new".to_owned() });
    let read = || rig.job("f", FileOp::Read { line: None, limit: None });
    let code = |event| match event {
        ServiceEvent::FileDone { result, .. } => result.err().map(|error| error.code),
        other => panic!("{other:?}"),
    };
    for (session, keeps_writes, stopped) in
        [(2, false, [false, false]), (1, true, [true, false]), (1, false, [true, true])]
    {
        fs::write(rig.root.join("f"), "old").unwrap();
        rig.files.forget(ConnId(1));
        let read = rig.files.accept(read());
        rig.files.stop(SessionKey(session), keeps_writes);
        let expected = stopped.map(|is_stopped| is_stopped.then_some(RpcError::CANCELLED));
        assert_eq!(code(read.serve()), expected[0]);
        let write = rig.files.accept(write());
        rig.files.stop(SessionKey(session), keeps_writes);
        assert_eq!(code(write.serve()), expected[1]);
        assert_eq!(fs::read_to_string(rig.root.join("f")).unwrap(), if stopped[1] { "old" } else { "new" });
    }
    // The end of the connection stops them too, and a stop does not affect later requests.
    let last = rig.files.accept(write());
    rig.files.forget(ConnId(1));
    assert_eq!(code(last.serve()), Some(RpcError::CANCELLED));
    rig.write("f", "later").unwrap();
}

#[test]
fn a_write_waits_only_for_writes_of_the_same_file() {
    let rig = rig();
    let path = rig.root.join("slow");
    let slow = rig.files.jobs.write(&path, &Stop::default()).unwrap();
    rig.write("other", "text").unwrap();
    let waiting = rig.files.accept(rig.job("slow", FileOp::Write { content: "text".to_owned() }));
    std::thread::scope(|scope| {
        let served = scope.spawn(|| waiting.serve());
        rig.files.stop(SessionKey(1), false);
        let ServiceEvent::FileDone { result, .. } = served.join().unwrap() else { panic!("no answer") };
        assert_eq!(result.unwrap_err().code, RpcError::CANCELLED);
    });
    drop(slow);
    rig.write("slow", "text").unwrap();
}
