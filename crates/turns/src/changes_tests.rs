use super::*;

fn list(message: &str) -> String {
    files(Json::parse(message).unwrap())
}

fn list_of(diffs: &str) -> String {
    list(&format!(r#"{{"info":{{"summary":{{"diffs":{diffs}}}}},"parts":[]}}"#))
}

fn find(diffs: &str, file: &str) -> Result<String, ChangesError> {
    diff(Json::parse(diffs).unwrap(), file)
}

#[test]
fn entries_have_a_path_and_counts() {
    let diffs = r#"[{"file":"a","additions":"3","deletions":null,"status":5},{"path":"b"},{"file":""},null,{"file":"c","additions":-1,"deletions":2.5,"status":"weird"}]"#;
    let expected = r#"{"files":[{"file":"a","additions":0,"deletions":0},{"file":"c","status":"weird","additions":-1,"deletions":2.5}]}"#;
    assert_eq!(list_of(diffs), expected);
}

#[test]
fn values_are_spelled_as_javascript_spells_them() {
    let diffs = r#"[{"patch":"P","deletions":1e400,"additions":1.50,"status":"\u0061","file":"\u00e9\ud800"},["file"],{"file":7}]"#;
    let expected = "{\"files\":[{\"file\":\"\u{e9}\\ud800\",\"status\":\"a\",\"additions\":1.5,\"deletions\":0}]}";
    assert_eq!(list_of(diffs), expected);
    let repeated = r#"[{"file":"a","file":"b","additions":1,"additions":2}]"#;
    let last = r#"{"files":[{"file":"b","additions":2,"deletions":0}]}"#;
    assert_eq!(list_of(repeated), last, "the last of a repeated key counts");
}

#[test]
fn the_summary_is_that_of_info_or_of_a_bare_info() {
    let summary = r#""summary":{"diffs":[{"file":"a"}]}"#;
    let one = r#"{"files":[{"file":"a","additions":0,"deletions":0}]}"#;
    assert_eq!(list(&format!(r#"{{"id":"m",{summary}}}"#)), one);
    assert_eq!(list(&format!(r#"{{"info":null,{summary}}}"#)), one);
    let none = r#"{"files":[]}"#;
    for message in [
        &*format!(r#"{{"info":{{}},{summary}}}"#),
        &*format!(r#"{{"data":{{"info":{{{summary}}}}}}}"#),
        r#"{"info":{"summary":true}}"#,
        r#"{"info":{"summary":{"diffs":{"0":{"file":"a"}}}}}"#,
        r#"{"info":{"summary":{"diffs":null}}}"#,
        "{}",
        "[]",
        "null",
    ] {
        assert_eq!(list(message), none, "{message}");
    }
}

#[test]
fn a_diff_leaves_as_it_came() {
    let entry = r#"{ "file":"src/a.ts", "patch":"P", "additions":1.0,"extra":[1] }"#;
    let diffs =
        format!(r#"[null,"src/a.ts",{{"file":["src/a.ts"]}},{entry},{{"file":"src/a.ts"}}]"#);
    assert_eq!(find(&diffs, "src/a.ts"), Ok(format!(r#"{{"diff":{entry}}}"#)));
    let escaped = r#"[{"file":"src\/\u0061.ts"}]"#;
    assert_eq!(find(escaped, "src/a.ts"), Ok(r#"{"diff":{"file":"src\/\u0061.ts"}}"#.to_owned()));
}

#[test]
fn a_path_is_matched_exactly() {
    let diffs = r#"[{"file":"src/a.ts"},{"file":"b"}]"#;
    for file in ["src/A.ts", "./src/a.ts", "a.ts", "src/a.ts ", "c"] {
        assert_eq!(find(diffs, file), Err(ChangesError::FileNotFound), "{file}");
    }
    assert_eq!(find("[]", "b"), Err(ChangesError::FileNotFound));
    for no_list in ["{}", "null", r#"{"data":[]}"#] {
        assert_eq!(find(no_list, "b"), Err(ChangesError::Message(MessageError::Upstream)));
    }
}

#[test]
fn files_are_checked() {
    assert_eq!(parse_file(Param::Absent), Ok(None));
    assert_eq!(parse_file(Param::One("")), Ok(None));
    let longest = "\u{1f600}".repeat(2048);
    for file in ["a", " ", "\u{80}", "../x", &*longest] {
        assert_eq!(parse_file(Param::One(file)), Ok(Some(file)), "{file:?}");
    }
    for file in ["a\0", "\n", "a\u{1f}b", "\u{7f}", &*"x".repeat(4097), &*format!("{longest}x")] {
        assert_eq!(parse_file(Param::One(file)), Err(ChangesError::BadFile), "{file:?}");
    }
    assert_eq!(parse_file(Param::Repeated), Err(ChangesError::BadFile));
}

#[test]
fn a_real_servers_diffs_are_those_of_its_message() {
    let read = |file: &str| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/opencode/b-long/");
        std::fs::read_to_string(format!("{root}{file}")).unwrap()
    };
    let (message, diffs) = (read("message-user-6.json"), read("diff-user-6.json"));
    let files: serde_json::Value = serde_json::from_str(&list(&message)).unwrap();
    let listed = files["files"].as_array().unwrap();
    let entries: Vec<_> = Json::parse(&diffs).unwrap().elements().unwrap().collect();
    assert!(!entries.is_empty() && listed.len() == entries.len());
    for (file, entry) in listed.iter().zip(entries) {
        let name = file["file"].as_str().unwrap();
        assert_eq!(find(&diffs, name), Ok(format!(r#"{{"diff":{}}}"#, entry.text())));
        let entry: serde_json::Value = serde_json::from_str(entry.text()).unwrap();
        for key in ["status", "additions", "deletions"] {
            assert_eq!(file.get(key), entry.get(key), "{key} of {name}");
        }
        assert_eq!((file.get("patch"), entry["patch"].is_string()), (None, true));
    }
}
