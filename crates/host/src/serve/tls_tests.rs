use std::{fs, path::PathBuf};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use super::{TlsError, acceptor};
use crate::options::TlsOptions;

struct Files {
    folder: TempDir,
}

impl Files {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn pair() -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

#[test]
fn files_that_cannot_be_used_are_named_with_what_is_wrong() {
    let files = Files { folder: TempDir::new().unwrap() };
    let (certificate, key) = pair();
    let good = files.write("good.pem", &certificate);
    let good_key = files.write("good.key", &key);
    let empty = files.write("empty", "");
    let cut = files.write("cut", &certificate[..certificate.len() / 2]);
    let other_key = files.write("other.key", &pair().1);
    let missing = files.folder.path().join("missing");

    let options = |certificate: &PathBuf, key: &PathBuf| TlsOptions {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    assert!(acceptor(&options(&good, &good_key)).is_ok());
    for (certificate, key, named, problem) in [
        (&missing, &good_key, &missing, "cannot be read"),
        (&empty, &good_key, &empty, "holds no certificate"),
        (&good_key, &good_key, &good_key, "holds no certificate"),
        (&cut, &good_key, &cut, "is not whole"),
        (&good, &missing, &missing, "cannot be read"),
        (&good, &good, &good, "holds nothing of the kind"),
        (&good, &other_key, &other_key, "is not the private key of"),
    ] {
        let error = acceptor(&options(certificate, key)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&*named.to_string_lossy()) && text.contains(problem), "{text}");
    }
    let error = acceptor(&options(&good, &other_key)).unwrap_err();
    assert!(matches!(error, TlsError::Pair { .. }), "{error:?}");
}
