//! Where segments can live, and what is said where they cannot.

use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

use super::{group, settings, try_group};
use crate::layout::Layout;
use crate::segment::{Segment, Token, create};
use crate::settings::Place;

#[test]
fn a_segment_leaves_no_name() {
    let dir = tempfile::tempdir().unwrap();
    let settings = in_dir(dir.path());
    group(2, &settings, |_, session| {
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "while it lives");
        drop(session);
    });
}

#[test]
fn two_ranks_need_five_megabytes() {
    let layout = Layout { world: 2, chunk: 256 * 1024, ring: 2 << 20 };
    assert!((5 << 20..(5 << 20) + (64 << 10)).contains(&layout.bytes()), "{}", layout.bytes());
}

#[test]
fn memfd_needs_no_directory() {
    let mut settings = settings("1KiB");
    settings.values.insert("host.shm_dir".to_owned(), "memfd".to_owned());
    assert_eq!(group(2, &settings, |_, _| ()).len(), 2);
}

#[test]
fn a_directory_that_cannot_be_had_is_refused_by_all_in_the_same_words() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let file = file.path().to_str().unwrap();
    for (dir, why) in [("/no/such/dir", "No such file or directory"), (file, "Not a directory")] {
        let errors = try_group(3, &|_| in_dir(Path::new(dir)), |_, session| {
            format!("{:?}", session.err().expect("it cannot be had"))
        });
        assert!(errors.iter().all(|e| *e == errors[0]), "{errors:?}");
        for part in [dir, why, "rank: 0", "create the shared segment", "CROSSOVER_HOST__SHM_DIR"] {
            assert!(errors[0].contains(part), "`{part}` in {}", errors[0]);
        }
    }
}

#[test]
fn one_ranks_wrong_setting_is_everyones_refusal() {
    let chunk = |rank| settings(if rank == 1 { "256K" } else { "256KiB" });
    let errors = try_group(2, &chunk, |_, session| format!("{:?}", session.err().unwrap()));
    assert_eq!(errors[0], errors[1]);
    assert!(errors[0].contains("rank: 1") && errors[0].contains("host.chunk is `256K`"));
}

#[test]
fn the_least_chunk_counts() {
    let chunk = |rank| settings(["2KiB", "1KiB"][rank as usize]);
    let chunks = try_group(2, &chunk, |_, session| session.unwrap().segment.layout().chunk);
    assert_eq!(chunks, [1024, 1024]);
}

#[test]
fn ranks_are_near_or_far_for_all_of_them() {
    let of = |distance: Option<&str>| {
        let mut settings = settings("1KiB");
        settings.values.remove("host.distance");
        settings.values.extend(distance.map(|d| ("host.distance".to_owned(), d.to_owned())));
        settings
    };
    let fars = |distance| group(3, &of(distance), |_, session| session.distance.far);
    assert_eq!(fars(Some("near")), [false; 3]);
    assert_eq!(fars(Some("far")), [true; 3]);
    let measured = group(2, &of(None), |_, session| session.distance.far);
    assert_eq!(measured, [measured[0]; 2]);

    let differ = |rank| of((rank == 1).then_some("far"));
    let errors = try_group(2, &differ, |_, session| format!("{:?}", session.err().unwrap()));
    assert_eq!(errors[0], errors[1]);
    for part in ["Misset", "rank: 1", "host.distance", "has `far` where rank 0 has not set it"] {
        assert!(errors[0].contains(part), "`{part}` in {}", errors[0]);
    }
}

#[test]
fn too_little_space_says_how_much_is_needed() {
    let Some(mount) = SmallTmpfs::mount() else {
        // Said on stderr by libtest's capture when asked for; there is nothing else to test with.
        return;
    };
    let layout = Layout { world: 4, chunk: 1 << 20, ring: 0 };
    let token = Token { nonce: 1, layout };
    let error = create(&Place::Dir(mount.0.path().into()), token).unwrap_err().0;
    let needed = format!("needs {} B, 1048576 B are free", layout.bytes());
    for part in [mount.0.path().to_str().unwrap(), &needed, "--shm-size", "emptyDir", "memfd"] {
        assert!(error.contains(part), "`{part}` in {error}");
    }
}

#[test]
fn another_groups_segment_is_not_taken() {
    let token = Token { nonce: 7, layout: Layout { world: 2, chunk: 1024, ring: 0 } };
    let file = create(&Place::Memfd, token).unwrap();
    Segment::map(file.as_fd(), token.layout, token).unwrap();
    let other = Token { nonce: 8, ..token };
    let error = Segment::map(file.as_fd(), token.layout, other).err().unwrap();
    assert!(error.0.contains("not the one that rank 0 made"));
    let larger = Layout { world: 3, chunk: 1024, ring: 0 };
    let error = Segment::map(file.as_fd(), larger, token).err().unwrap();
    assert!(error.0.contains("are expected"), "{error}");
}

fn in_dir(dir: &Path) -> crossover_core::settings::BackendSettings {
    let mut settings = settings("1KiB");
    settings.values.insert("host.shm_dir".to_owned(), dir.display().to_string());
    settings
}

/// A mount of one mebibyte, where this process may make one.
struct SmallTmpfs(tempfile::TempDir);

impl SmallTmpfs {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(dir.path())
            .output();
        mount.is_ok_and(|out| out.status.success()).then(|| SmallTmpfs(dir))
    }
}

impl Drop for SmallTmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
