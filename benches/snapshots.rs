//! Snapshots of folders with many files, after the first one.

#![allow(clippy::expect_used, clippy::disallowed_methods, clippy::panic, reason = "a benchmark")]

use std::fs;
use std::path::Path;
use std::process::Command;

use criterion::{Criterion, criterion_group, criterion_main};
use parlor::host::snapshots::{Options, Snapshots};

const FILES_IN_FOLDER: usize = 100;

fn git(folder: &Path, args: &[&str]) {
    let status = Command::new("git").arg("-C").arg(folder).args(args).status().expect("git starts");
    assert!(status.success(), "git {args:?}");
}

/// A repository with this number of files.
fn fill(folder: &Path, files: usize) {
    for file in 0..files {
        let inner = folder.join(format!("d{}", file / FILES_IN_FOLDER));
        if file % FILES_IN_FOLDER == 0 {
            fs::create_dir(&inner).expect("a new folder");
        }
        fs::write(inner.join(format!("f{file}.txt")), format!("content of {file}\n")).expect("a new file");
    }
    git(folder, &["init", "-q"]);
    git(folder, &["add", "-A"]);
    git(folder, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all"]);
}

fn captures(criterion: &mut Criterion) {
    for files in [10_000, 100_000] {
        let base = tempfile::tempdir().expect("a temporary folder");
        let work = base.path().join("work");
        fs::create_dir(&work).expect("a new folder");
        fill(&work, files);
        let data = base.path().join("data");
        let options = Options { data, allows_network: true, ..Options::default() };
        let snapshots = Snapshots::open(&work, &options).expect("snapshots open");
        let capture = || snapshots.capture("bench", &[]).expect("a snapshot");
        capture();
        let mut group = criterion.benchmark_group(format!("capture of {files} files"));
        group.sample_size(10);
        group.bench_function("unchanged", |bencher| bencher.iter(capture));
        let mut number = 0;
        group.bench_function("one changed", |bencher| {
            bencher.iter(|| {
                number += 1;
                fs::write(work.join("d0/f0.txt"), number.to_string()).expect("a written file");
                capture()
            });
        });
    }
}

criterion_group!(benches, captures);
criterion_main!(benches);
