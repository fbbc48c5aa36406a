//! A disk that is really full.
//!
//! The store runs in another process: one that has a small file system of its own, or one that the
//! system lets write no file beyond a size.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Output},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use turnkeep_log::Event;
use turnkeep_store::{Access, SessionStore};

use crate::support::{batch, create, event_of, id, never, open, read};

/// Says to the process that runs the test again how its disk is full, and where it is.
pub const FULL: &str = "TURNKEEP_TEST_FULL_DISK";

/// Room for a few batches and not for many.
const KIB: u64 = 256;

/// Runs a test of this program again where a disk of 256 KiB is mounted at `place`, in a mount
/// namespace of its own. Where no such thing may be made, nothing is run and why is returned.
pub fn on_small_disk(test: &str, backend: &str, place: &Path) -> Result<Output, String> {
    let mount = format!("mount -t tmpfs -o size={KIB}k,mode=700 none \"$0\"");
    let namespaces = ["-m", "-Urm"].map(|kind| {
        let tried = Command::new("unshare").args([kind, "sh", "-c", &mount]).arg(place).output();
        match tried {
            Ok(output) if output.status.success() => Ok(kind),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("unshare: {error}")),
        }
    });
    let kind = namespaces.into_iter().reduce(Result::or).unwrap()?;
    let run = format!("{mount} && exec \"$@\"");
    let ran = Command::new("unshare")
        .args([kind, "sh", "-c", &run])
        .arg(place)
        .arg(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(FULL, format!("disk {backend} {}", place.display()))
        .output()
        .unwrap();
    Ok(ran)
}

/// Runs a test of this program again where no file may grow beyond 256 KiB.
pub fn with_small_files(test: &str, backend: &str, place: &Path) -> Output {
    // Being told by the error, and not by a signal that ends the process.
    let run = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$@\"", KIB * 2);
    Command::new("sh")
        .args(["-c", &run, "sh"])
        .arg(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(FULL, format!("files {backend} {}", place.display()))
        .output()
        .unwrap()
}

/// How the room is used up, and made again.
pub enum Room<'a> {
    /// By another file on the same disk.
    Disk(&'a Path),
    /// By the log itself.
    Files,
}

impl Room<'_> {
    fn free(&self) {
        match self {
            Self::Disk(place) => fs::remove_file(place.join("ballast")).unwrap(),
            Self::Files => {
                let hard = getrlimit(Resource::Fsize).maximum;
                setrlimit(Resource::Fsize, Rlimit { current: hard, maximum: hard }).unwrap();
            }
        }
    }

    /// Leaves some kilobytes.
    fn use_up(&self) {
        let Self::Disk(place) = self else { return };
        let mut ballast = fs::File::create(place.join("ballast")).unwrap();
        while ballast.write_all(&[7; 1024]).is_ok() {}
        let length = ballast.metadata().unwrap().len();
        ballast.set_len(length / 4096 * 4096 - 24 * 1024).unwrap();
    }
}

/// What a full disk does to an append: it is taken back, the log stays as it was, and the same append
/// works once there is room. `log` is the session's file where it has one of its own.
pub async fn ordeal(
    store: &dyn SessionStore,
    fresh: &dyn SessionStore,
    room: Room<'_>,
    log: Option<&Path>,
) {
    let writer = create(store, "s").await;
    writer.append(batch(0, 3), &never()).await.unwrap();
    room.use_up();

    let (mut next, mut acknowledged) = (3, batch(0, 3));
    let failure = loop {
        let events = large(next);
        match writer.append(events.clone(), &never()).await {
            Ok(seq) => {
                next = seq.0;
                acknowledged.extend(events);
            }
            Err(failure) => break failure,
        }
        assert!(next < 1000, "the disk is never full");
    };
    println!("refused: {failure}");

    // Everybody sees what was acknowledged, and the file is as it was.
    assert_eq!(read(&*open(fresh, "s", Access::Read).await).await, acknowledged);
    if log.is_none() && matches!(room, Room::Files) {
        // To SQLite this is no full disk but a broken one: what became of the commit is not known, and
        // the handle is given up.
        assert_eq!(failure.kind(), "poisoned", "{failure}");
        let _ = writer.close().await;
        room.free();
    } else {
        let reason = match room {
            Room::Disk(_) => ["No space left on device", "is full"],
            Room::Files => ["File too large"; 2],
        };
        let text = failure.to_string();
        assert!(text.starts_with("session \"s\": cannot "), "{text}");
        assert!(reason.iter().any(|reason| text.contains(reason)), "{text}");
        assert_eq!(failure.kind(), "io", "{failure}");
        assert_eq!(read(&*writer).await, acknowledged);
        // Again and again.
        let bytes = log.map(|log| fs::read(log).unwrap());
        for _ in 0..3 {
            let again = writer.append(large(next), &never()).await.unwrap_err();
            assert_eq!(again.kind(), "io", "{again}");
        }
        assert!(log.map(|log| fs::read(log).unwrap()) == bytes, "the log was changed");

        room.free();
        let events = large(next);
        next = writer.append(events.clone(), &never()).await.unwrap().0;
        acknowledged.extend(events);
        writer.close().await.unwrap();
    }

    let again = fresh.open(&id("s"), Access::Write, &never()).await.unwrap();
    assert_eq!(read(&*again).await, acknowledged);
    again.append(batch(next, 1), &never()).await.unwrap();
    again.close().await.unwrap();
    println!("survived: {next} events acknowledged and read back");
}

/// A batch of some kilobytes that does not get smaller when it is packed.
fn large(first: u64) -> Vec<Event> {
    let mut noise = first + 1;
    (first..first + 2)
        .map(|seq| {
            let mut pad = String::new();
            while pad.len() < 6000 {
                noise =
                    noise.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                write!(pad, "{:x}", noise ^ (noise >> 33)).unwrap();
            }
            event_of("todo/write", seq, &format!(r#"{{"todos":[],"pad":"{pad}"}}"#))
        })
        .collect()
}
