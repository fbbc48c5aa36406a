//! Ten kinds of bad input, as a person meets them: the sentence, the exit code, that nothing was
//! changed, and that the neighbours are still listed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use support::{Bench, text, turn};

/// A store with the sessions `a`, `s` and `z`, each a turn of six events.
struct Stand {
    bench: Bench,
    plain: bool,
}

impl Stand {
    fn new(plain: bool) -> Self {
        let bench = Bench::new();
        let compression = if plain { "none" } else { "zstd" };
        for id in ["a", "s", "z"] {
            let create = ["--compression", compression, "append", id, "--create"];
            let args = [&create[..], &["--cwd", "/work/proj"]].concat();
            let made = bench.run_with_input(&args, turn(1, "a", "b").as_bytes());
            assert_eq!(text(&made.stdout), "6\n", "{made:?}");
        }
        Self { bench, plain }
    }

    fn both() -> [Self; 2] {
        [Self::new(false), Self::new(true)]
    }

    fn dir(&self) -> PathBuf {
        self.bench.root().join("--work-proj--/s")
    }

    fn log(&self) -> PathBuf {
        self.dir().join(if self.plain { "session.jsonl" } else { "session.jsonl.zstd" })
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.log()).unwrap()
    }

    /// Replaces part of the plain text of the log.
    fn edit(&self, from: &str, to: &str) {
        let log = String::from_utf8(self.bytes()).unwrap();
        assert!(log.contains(from), "{log}");
        fs::write(self.log(), log.replacen(from, to, 1)).unwrap();
    }

    fn add(&self, bytes: &[u8]) {
        fs::write(self.log(), [self.bytes(), bytes.to_vec()].concat()).unwrap();
    }

    /// Checks that the session is refused with this code and this sentence, whatever is asked of it.
    /// `LOG` and `DIR` stand for where it is.
    fn refused(&self, code: i32, sentence: &str, state: Option<&str>) {
        let sentence = sentence.replace("LOG", &self.log().display().to_string());
        let sentence = sentence.replace("DIR", &self.dir().display().to_string());
        let sentence = if sentence.contains(" is corrupt: ") {
            format!("{sentence}; `turnkeep verify s` says what is lost")
        } else {
            sentence
        };
        let before = self.files();
        let events = self.bench.run(&["events", "s"]);
        assert_eq!(text(&events.stderr), format!("turnkeep: {sentence}\n"));
        assert_eq!(events.status.code(), Some(code), "{events:?}");
        assert_eq!(text(&events.stdout), "");
        let json = self.bench.run(&["--json", "events", "s"]);
        let error: serde_json::Value = serde_json::from_slice(&json.stderr).unwrap();
        assert_eq!(error["error"]["message"], sentence);
        let shown = self.bench.run(&["show", "s"]);
        assert_eq!(shown.status.code(), Some(code), "{shown:?}");
        assert_eq!(text(&shown.stderr).lines().count(), 1, "{shown:?}");
        self.listed(state);
        self.unchanged(&before);
        let appended = self.bench.run_with_input(&["append", "s"], turn(2, "c", "d").as_bytes());
        assert_eq!(appended.status.code(), Some(code), "{appended:?}");
        self.unchanged(&before);
    }

    /// Checks that so many events are read.
    fn reads(&self, events: usize) {
        let before = self.files();
        let read = self.bench.run(&["events", "s"]);
        assert!(read.status.success() && read.stderr.is_empty(), "{read:?}");
        assert_eq!(text(&read.stdout).lines().count(), events);
        assert!(self.bench.run(&["show", "s"]).status.success());
        self.listed(Some("ok"));
        self.unchanged(&before);
    }

    /// Checks the state that `ls` gives the session, and that the neighbours are as ever.
    fn listed(&self, state: Option<&str>) {
        let listed = self.bench.run(&["--json", "ls"]);
        assert!(listed.status.success(), "{listed:?}");
        let states: BTreeMap<String, String> = text(&listed.stdout)
            .lines()
            .map(|line| {
                let entry: serde_json::Value = serde_json::from_str(line).unwrap();
                let text = |key: &str| entry[key].as_str().unwrap().to_owned();
                (text("id"), text("state"))
            })
            .collect();
        let expected = [("a", Some("ok")), ("s", state), ("z", Some("ok"))];
        let expected = expected.into_iter().filter_map(|(id, state)| Some((id, state?)));
        assert!(states.iter().map(|(id, state)| (id.as_str(), state.as_str())).eq(expected));
    }

    /// Every file, with its mode, its time and its bytes; not the lock, which whoever wants to
    /// write leaves behind.
    fn files(&self) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.bench.root()];
        while let Some(path) = left.pop() {
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if !path.ends_with("session.lock") {
                let bytes =
                    if meta.is_file() { fs::read(&path).unwrap_or_default() } else { vec![] };
                found.insert(path, (meta.mode(), meta.mtime(), meta.mtime_nsec(), bytes));
            }
        }
        found
    }

    fn unchanged(&self, before: &BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>) {
        assert!(*before == self.files(), "something was changed");
    }
}

#[test]
fn a_truncated_header() {
    for stand in Stand::both() {
        fs::write(stand.log(), &stand.bytes()[..20]).unwrap();
        let log = if stand.plain { "session log" } else { "Zstandard session log" };
        let sentence = format!(
            "session \"s\": stored log is corrupt: empty or header-less {log} (raw log: LOG)"
        );
        stand.refused(6, &sentence, Some("damaged"));
    }
}

#[test]
fn a_future_version() {
    let stand = Stand::new(true);
    stand.edit("\"version\":0", "\"version\":7");
    let sentence = "session \"s\" uses log format v7, but this build reads only v0: the log was \
                    written by a newer harness — upgrade the harness to open it (raw log: LOG)";
    stand.refused(5, sentence, Some("newer"));
    // So is a log that a newer harness has put beside ours.
    for stand in Stand::both() {
        let name =
            stand.log().file_name().unwrap().to_str().unwrap().replace("session", "session.v3");
        fs::write(stand.dir().join(&name), "whatever").unwrap();
        let sentence = format!(
            "session \"s\" uses log format v3, but this build reads only v0: the log was written by \
             a newer harness — upgrade the harness to open it (raw log: DIR/{name})"
        );
        stand.refused(5, &sentence, Some("newer"));
    }
}

#[test]
fn an_unknown_type() {
    let stand = Stand::new(true);
    stand.edit("\"type\":\"step/end\"", "\"type\":\"acme/step\"");
    let sentence = "session \"s\" contains event type \"acme/step\" (seq 4) unknown to this harness \
                    and not marked ignorable; refusing to interpret the log — it was likely written \
                    by a newer harness; upgrade to open it (raw log: LOG)";
    stand.refused(5, sentence, Some("newer"));
}

#[test]
fn a_duplicate_seq() {
    let stand = Stand::new(true);
    stand.edit("\"seq\":4", "\"seq\":3");
    let sentence = "session \"s\": stored log is corrupt: seq gap in committed region at line 5 \
                    (expected 4, got 3) (raw log: LOG)";
    stand.refused(6, sentence, Some("damaged"));
}

#[test]
fn a_garbage_tail() {
    for stand in Stand::both() {
        let length = stand.bytes().len();
        stand.add(b"\x01garbage\xff");
        if stand.plain {
            // Bytes without the end of a line: an append that was cut short.
            stand.reads(6);
            continue;
        }
        let sentence = format!(
            "session \"s\": stored log is corrupt: invalid frame magic at byte {length} (raw log: LOG)"
        );
        stand.refused(6, &sentence, Some("damaged"));
    }
}

#[test]
fn a_zero_tail() {
    for stand in Stand::both() {
        stand.add(&[0; 4096]);
        stand.reads(6);
        let more = stand.bench.run_with_input(&["append", "s"], turn(2, "c", "d").as_bytes());
        assert_eq!(text(&more.stdout), "12\n", "{more:?}");
        stand.reads(12);
    }
}

#[test]
fn a_wrong_id() {
    for stand in Stand::both() {
        let other = stand.dir().with_file_name("a").join(stand.log().file_name().unwrap());
        fs::copy(other, stand.log()).unwrap();
        let sentence = "session \"s\": stored log is corrupt: requested id \"s\" does not match \
                        header id \"a\" (raw log: LOG)";
        stand.refused(6, sentence, Some("damaged"));
    }
}

#[test]
fn a_symlinked_session_directory() {
    for stand in Stand::both() {
        let moved = stand.bench.root().with_file_name("moved");
        fs::rename(stand.dir(), &moved).unwrap();
        symlink(&moved, stand.dir()).unwrap();
        stand.reads(6);
        fs::remove_file(stand.dir()).unwrap();
        symlink("a", stand.dir()).unwrap();
        let sentence = "session \"s\": stored log is corrupt: requested id \"s\" does not match \
                        header id \"a\" (raw log: LOG)";
        stand.refused(6, sentence, Some("damaged"));
        fs::remove_file(stand.dir()).unwrap();
        symlink("s", stand.dir()).unwrap();
        let loops = fs::metadata(stand.dir()).unwrap_err();
        let sentence = format!("session \"s\": cannot look for it in DIR: {loops}");
        stand.refused(7, &sentence, Some("damaged"));
    }
}

/// Root may read a file of any mode, so as root the command runs without that privilege.
#[test]
fn an_unreadable_file() {
    for stand in Stand::both() {
        fs::set_permissions(stand.log(), fs::Permissions::from_mode(0o000)).unwrap();
        let before = stand.files();
        let run = |args: &[&str]| {
            let command = stand.bench.command(args);
            let mut unprivileged = match fs::File::open(stand.log()) {
                Ok(_) => without_privilege(&command),
                Err(_) => command,
            };
            unprivileged.stdin(Stdio::null()).output().unwrap_or_else(|error| {
                panic!("run as root, this test needs setpriv (of util-linux): {error}")
            })
        };
        let sentence = format!(
            "turnkeep: session \"s\": cannot open {}: Permission denied (os error 13)\n",
            stand.log().display()
        );
        for args in [&["events", "s"][..], &["append", "s"]] {
            let output = run(args);
            assert_eq!(text(&output.stderr), sentence);
            assert_eq!(output.status.code(), Some(7), "{output:?}");
        }
        let listed = text(&run(&["ls"]).stdout).to_owned();
        let states = ["a", "s", "z"].map(|id| {
            let line = listed.lines().find(|line| line.starts_with(&format!("{id} "))).unwrap();
            line.contains("  ok")
        });
        assert_eq!(states, [true, false, true], "{listed}");
        assert!(listed.contains("it cannot be read: Permission denied"), "{listed}");
        stand.unchanged(&before);
        fs::set_permissions(stand.log(), fs::Permissions::from_mode(0o600)).unwrap();
        stand.reads(6);
    }
}

/// The same command, as a root that has to obey the modes of files.
fn without_privilege(command: &Command) -> Command {
    let mut wrapped = Command::new("setpriv");
    wrapped
        .arg("--bounding-set=-dac_override,-dac_read_search")
        .arg("--inh-caps=-dac_override,-dac_read_search")
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped
}

/// What happens on a full disk, as a script: `$1` makes the disk, `$2` fills it, `$3` makes room. Its
/// lines tell what came of each command.
const FULL: &str = r#"
set -e
mount=$1 fill=$2 room=$3 command=$4
eval "$mount"
set +e
"$command" append s --create <first >next 2>said; echo "first $? $(cat next said)"
eval "$fill"
"$command" append s --batch 2 <many >next 2>said; echo "full $? $(cat next) $(cat said)"
"$command" append s <many >again 2>said; echo "again $? $(cat again)"
echo "kept $("$command" events s | wc -l) $(tail -n1 next)"
eval "$room"
"$command" append s <first >next 2>said; echo "freed $? $(cat next said)"
echo "kept $("$command" events s | wc -l) $(cat next)"
"#;

/// A disk of 512 KiB that another file fills up; where none can be mounted, which is printed, files
/// that may not grow beyond 64 KiB.
#[test]
fn a_full_disk() {
    let mount = "mount -t tmpfs -o size=512k,mode=700 none disk";
    let fill = "cat /dev/zero >disk/ballast; truncate -s -40k disk/ballast";
    let probe = |kind| {
        let bench = Bench::new();
        let tried = Command::new("unshare")
            .args([kind, "mount", "-t", "tmpfs", "none"])
            .arg(bench.root().parent().unwrap())
            .output();
        tried.is_ok_and(|tried| tried.status.success())
    };
    let kind = ["-m", "-Urm"].into_iter().find(|kind| probe(kind));
    for compression in ["zstd", "none"] {
        match kind {
            Some(kind) => {
                let enter = ["unshare", kind, "sh"];
                let script = [mount, fill, "rm disk/ballast"];
                full_disk(&enter, compression, script, "No space left on device (os error 28)");
            }
            None => eprintln!(
                "NOT SHOWN on a real file system: none can be mounted here. Only files of limited \
                 size were tried."
            ),
        }
        let limit = "trap '' XFSZ; ulimit -S -f 128";
        let script = ["true", limit, "ulimit -S -f unlimited"];
        full_disk(&["sh"], compression, script, "File too large (os error 27)");
    }
}

fn full_disk(enter: &[&str], compression: &str, script: [&str; 3], reason: &str) {
    let bench = Bench::new();
    let folder = bench.root().parent().unwrap().to_owned();
    let event = |number: usize| {
        let numbers = (0..300).map(|at| pseudo_random(number * 300 + at).to_string());
        let pad: String = numbers.collect();
        format!("{{\"type\":\"todo/write\",\"data\":{{\"todos\":[],\"pad\":\"{pad}\"}}}}\n")
    };
    fs::write(folder.join("first"), event(0) + &event(1)).unwrap();
    fs::write(folder.join("many"), (2..100).map(event).collect::<String>()).unwrap();
    fs::create_dir(folder.join("disk")).unwrap();
    let ran = command_in(&bench, &folder, enter, script, compression);
    let said = text(&ran.stdout);
    assert!(ran.status.success(), "{ran:?}");
    let line = |word: &str, nth: usize| -> &str {
        said.lines().filter_map(|line| line.strip_prefix(word)).nth(nth).unwrap()
    };
    assert_eq!(line("first ", 0), "0 2", "{said}");
    let full = line("full ", 0);
    let (code, rest) = full.split_once(' ').unwrap();
    let (next, sentence) = rest.split_once(' ').unwrap();
    let next: usize = next.parse().unwrap();
    assert!(code == "7" && (4..100).contains(&next), "{said}");
    assert!(sentence.starts_with("turnkeep: session \"s\": cannot append to "), "{said}");
    assert!(sentence.contains(&format!(": {reason}")), "{said}");
    assert!(line("again ", 0).starts_with('7'), "{said}");
    // All that was acknowledged, and nothing else.
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(fields(line("kept ", 0)), [next.to_string(), next.to_string()], "{said}");
    assert_eq!(line("freed ", 0), format!("0 {}", next + 2), "{said}");
    let now = (next + 2).to_string();
    assert_eq!(fields(line("kept ", 1)), [now.clone(), now], "{said}");
    println!("{compression}: {sentence}");
}

fn command_in(
    bench: &Bench,
    folder: &Path,
    enter: &[&str],
    script: [&str; 3],
    compression: &str,
) -> Output {
    let plain = bench.command(&[]);
    let mut command = Command::new(enter[0]);
    command.args(&enter[1..]).args(["-c", FULL, "sh"]).args(script).arg(plain.get_program());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env("TURNKEEP_STORE", folder.join("disk/sessions"))
        .env("TURNKEEP_COMPRESSION", compression)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn pseudo_random(number: usize) -> u64 {
    let mixed = (number as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 31)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 3
}
