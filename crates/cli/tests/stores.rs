//! The same commands on stores of every kind.

mod support;

use support::{Bench, text, turn};

#[test]
fn a_database_is_a_store_like_a_directory() {
    let bench = Bench::new();
    let directory = bench.root().display().to_string();
    let mut outputs = Vec::new();
    for store in [directory.as_str(), "sqlite:sessions.db"] {
        let run = |args: &[&str]| {
            let output = bench.run(&[&["--store", store], args].concat());
            assert!(output.status.success(), "{output:?}");
            text(&output.stdout).to_owned()
        };
        let append = ["--store", store, "append", "s", "--create", "--cwd", "/work"];
        let first = r#"{"type":"todo/write","seq":0,"time":7,"data":{"b":1.50,"a":"\ud83d"}}"#;
        let input = format!("{first}\n{}", turn(1, "Hello?", "World!"));
        let appended = bench.run_with_input(&append, input.as_bytes());
        assert_eq!(text(&appended.stdout), "7\n", "{appended:?}");
        let listed = run(&["ls"]);
        assert!(listed.contains("s "), "{listed}");
        let events = run(&["events", "s"]);
        assert!(events.starts_with(&format!("{first}\n")), "{events}");
        // Times are those of the append.
        outputs.push((events.lines().count(), run(&["show", "s"]).contains("World!")));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], (7, true));

    let refused = bench.run(&["--store", "sqlite:sessions", "ls"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("it is not a file"), "{refused:?}");
}

#[test]
fn memory_is_an_empty_store_each_time() {
    let bench = Bench::new();
    let input = turn(1, "Hello?", "World!");
    for _ in 0..2 {
        let append = ["--store", "memory:", "append", "s", "--create"];
        assert_eq!(text(&bench.run_with_input(&append, input.as_bytes()).stdout), "6\n");
    }
    let absent = bench.run(&["--store", "memory:", "events", "s"]);
    assert_eq!(absent.status.code(), Some(3), "{absent:?}");
}
