use super::{BadTarget, Directories, Target};

fn path(path: &str) -> Result<String, BadTarget> {
    Target::below_api(path).map(|target| target.to_text())
}

#[test]
fn a_path_goes_on_without_api_and_byte_for_byte() {
    for (came, goes) in [
        ("/api/session", "/session"),
        ("/API/session/ses_1", "/session/ses_1"),
        ("/api/api/session", "/api/session"),
        ("/api", "/"),
        ("/api/", "/"),
        ("/api/file/", "/file/"),
        ("/api/session/a%2Fb%20c/x'!$&()*+,;=:@~é", "/session/a%2Fb%20c/x'!$&()*+,;=:@~é"),
        ("/api/find/%252e%252e/a..b/...", "/find/%252e%252e/a..b/..."),
    ] {
        assert_eq!(path(came).as_deref(), Ok(goes), "{came}");
    }
}

#[test]
fn slashes_in_a_row_become_one() {
    assert_eq!(path("/api//evil.example/x").as_deref(), Ok("/evil.example/x"));
    assert_eq!(path("/api///session//ses_1//").as_deref(), Ok("/session/ses_1/"));
}

#[test]
fn dots_lead_nowhere_however_they_are_escaped() {
    for way in ["..", ".", "%2e%2e", "%2E.", ".%2e", "%2e", "a%2f..%2fb", "..%2f..", "%2f.."] {
        for path_with_it in
            [format!("/api/{way}"), format!("/api/x/{way}/y"), format!("/api/x/{way}/")]
        {
            assert_eq!(path(&path_with_it), Err(BadTarget), "{path_with_it}");
        }
    }
}

#[test]
fn a_zero_byte_and_other_controls_are_refused() {
    for way in ["%00", "a%00b", "%0d%0aset-cookie:x", "%7f", "%1b"] {
        assert_eq!(path(&format!("/api/x/{way}")), Err(BadTarget), "{way}");
    }
}

#[test]
fn backslashes_are_refused() {
    for way in ["\\", "..\\..", "%5c", "%5C..%5c", "\\\\evil.example\\x"] {
        assert_eq!(path(&format!("/api/{way}")), Err(BadTarget), "{way}");
    }
}

#[test]
fn escapes_that_are_not_whole_or_no_text_are_refused() {
    for way in ["%", "%2", "%zz", "%ff"] {
        assert_eq!(path(&format!("/api/{way}")), Err(BadTarget), "{way}");
    }
}

#[tokio::test]
async fn a_query_goes_on_byte_for_byte_but_for_directories() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap().join("the real one");
    let link = folder.path().canonicalize().unwrap().join("link");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let directories = Directories::default();
    let asked = async |query: &str, without: Option<&str>| {
        let target = Target::below_api("/api/x").unwrap();
        target.with_query(Some(query), &directories, without).await.to_text()
    };

    let odd = "a=1&&b=%zz+'\"<>&c&=d&a=2&directory=&directory=/no/such%20place";
    assert_eq!(asked(odd, None).await, format!("/x?{odd}"));
    let real_escaped = real.to_str().unwrap().replace(' ', "%20");
    let (link, real) = (link.display(), real.display().to_string());
    assert_eq!(
        asked(&format!("a=1&directory={link}&location%5Bdirectory%5D={link}"), None).await,
        format!("/x?a=1&directory={real_escaped}&location%5Bdirectory%5D={real_escaped}")
    );
    // One that is real already is not spelled anew.
    let plus = real.replace(' ', "+");
    assert_eq!(asked(&format!("directory={plus}"), None).await, format!("/x?directory={plus}"));

    let left_out = Some("includeReasoning");
    assert_eq!(asked("includeReasoning=false", left_out).await, "/x");
    assert_eq!(asked("l=1&include%52easoning=0&b", left_out).await, "/x?l=1&b");
    assert_eq!(asked("includeReasoning=false", None).await, "/x?includeReasoning=false");
}

#[test]
fn the_session_of_a_path_is_found() {
    for (path, session) in [
        ("/api/session/s%2F1/todo", Some("s/1")),
        ("/api/api/session/s1", Some("s1")),
        ("/api//session//s1", Some("s1")),
        ("/api/session", None),
        ("/api/session/", None),
        ("/api/session/status", None),
        ("/api/api/session/active", None),
        ("/api/file/session/s1", None),
    ] {
        assert_eq!(Target::below_api(path).unwrap().session().as_deref(), session, "{path}");
    }
}
