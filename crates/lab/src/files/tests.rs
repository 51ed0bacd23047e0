use std::os::unix::fs::{PermissionsExt, chown, symlink};

use testing::folder::Folder;

use super::*;

/// A user without rights, as whom a planted file is.
const OTHER: u32 = 65_533;

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("not tested: only root gives files to another user");
    }
    is_root
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn pipe(path: &str) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, Mode::from_raw_mode(0o600)).unwrap();
}

fn give(path: &str) {
    std::os::unix::fs::lchown(path, Some(OTHER), Some(OTHER)).unwrap();
}

/// A folder that all may write to.
fn shared(test: &str, mode: u32) -> Folder {
    let folder = Folder::new(test);
    fs::set_permissions(folder.folder(), fs::Permissions::from_mode(mode)).unwrap();
    folder
}

/// Every way to write to a path, by name; none of them may wait.
fn all(path: &str) -> Vec<(&'static str, io::Result<()>)> {
    let path = Path::new(path);
    let opened = |opening| open(path, opening, Access::Umask).map(drop);
    vec![
        ("check", check(path)),
        ("write", write(path, Access::Umask, "new")),
        ("append", opened(Opening::Append)),
        ("empty", opened(Opening::Emptied)),
        ("lock", opened(Opening::Lock)),
    ]
}

fn refusal(error: &io::Error) -> &Refused {
    let refused = error.get_ref().and_then(|it| it.downcast_ref());
    assert!(cure(error).is_some(), "{error:?}");
    refused.unwrap_or_else(|| panic!("{error:?}"))
}

#[test]
fn a_file_is_replaced_whole_and_nothing_stays_beside_it() {
    let folder = Folder::new("files-replaced");
    let path = folder.write("file", "a longer old text");
    write(Path::new(&path), Access::Umask, "new").unwrap();
    assert_eq!(text(&path), "new");
    let fails = |_: &mut File| -> io::Result<()> { Err(io::Error::other("full")) };
    replace(Path::new(&path), Access::Umask, &fails).unwrap_err();
    assert_eq!(text(&path), "new");
    assert_eq!(fs::read_dir(folder.folder()).unwrap().count(), 1);
    check(Path::new(&folder.path("next"))).unwrap();
    assert_eq!(fs::read_dir(folder.folder()).unwrap().count(), 1);
}

#[test]
fn what_may_be_secret_is_for_its_owner_alone() {
    let folder = Folder::new("files-secret");
    let path = folder.write("replaced", "");
    write(Path::new(&path), Access::Owner, "secret").unwrap();
    let new = folder.path("new");
    write_new(Path::new(&new), Access::Owner, "secret").unwrap();
    let log = folder.path("log");
    open(Path::new(&log), Opening::Append, Access::Owner).unwrap();
    for path in [path, new, log] {
        assert_eq!(mode(&path), 0o600, "{path}");
    }
    let kept = keep_in_temporary("files-secret", &|file| file.write_all(b"secret")).unwrap();
    assert_eq!((mode(&kept), text(&kept).as_str()), (0o600, "secret"));
    fs::remove_file(kept).unwrap();
    let private = folder.path("private");
    make_private_folder(Path::new(&private)).unwrap();
    assert_eq!(mode(private), 0o700);
}

#[test]
fn own_links_are_followed_also_to_what_is_not_there_yet() {
    let folder = Folder::new("files-own-links");
    for (target, link) in [("there", "a"), ("missing", "b")] {
        let link = folder.path(link);
        symlink(target, &link).unwrap();
        write(Path::new(&link), Access::Umask, "new").unwrap();
        assert!(Path::new(&link).is_symlink());
        assert_eq!(text(folder.path(target)), "new");
    }
    let circle = folder.path("circle");
    symlink("circle", &circle).unwrap();
    write(Path::new(&circle), Access::Umask, "new").unwrap_err();
    // A name that was not given by the user leads nowhere: the link itself is replaced.
    let link = folder.path("a");
    replace(Path::new(&link), Access::Umask, &|file| {
        file.write_all(b"whole")
    })
    .unwrap();
    assert!(!Path::new(&link).is_symlink());
    assert_eq!(text(folder.path("there")), "new");
    write_new(Path::new(&folder.path("b")), Access::Umask, "new").unwrap_err();
}

#[test]
fn devices_are_written_to_and_stay() {
    for device in ["/dev/null", "/dev/full"] {
        let path = Path::new(device);
        let written = write(path, Access::Umask, "text");
        assert_eq!(written.is_ok(), device == "/dev/null", "{written:?}");
        assert!(path.metadata().unwrap().file_type().is_char_device());
    }
}

#[test]
fn a_pipe_without_a_reader_is_refused_at_once() {
    let folder = Folder::new("files-pipe");
    let path = folder.path("pipe");
    pipe(&path);
    for (how, done) in all(&path) {
        let error = done.expect_err(how);
        assert_eq!(
            refusal(&error),
            &Refused::NoReader(path.clone().into()),
            "{how}"
        );
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let reader = rustix::fs::open(&path, flags, Mode::empty()).unwrap();
    write(Path::new(&path), Access::Umask, "text").unwrap();
    assert_eq!(rustix::io::read(&reader, &mut [0; 9]), Ok(4));
}

#[test]
fn what_another_user_placed_in_a_sticky_folder_is_refused() {
    if !is_root() {
        return;
    }
    let folder = shared("files-planted", 0o1777);
    let victim = Folder::new("files-victim");
    let kept = victim.write("kept", "kept");
    for (name, target) in [("link", kept.clone()), ("dangling", victim.path("missing"))] {
        let path = folder.path(name);
        symlink(target, &path).unwrap();
        give(&path);
        for (how, done) in all(&path) {
            let error = done.expect_err(how);
            let expected = Refused::ForeignLink(path.clone().into(), OTHER);
            assert_eq!(refusal(&error), &expected, "{how}");
        }
    }
    let path = folder.path("pipe");
    pipe(&path);
    give(&path);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let reader = rustix::fs::open(&path, flags, Mode::empty()).unwrap();
    for (how, done) in all(&path) {
        let error = done.expect_err(how);
        assert_eq!(
            refusal(&error),
            &Refused::ForeignFile(path.clone().into(), OTHER),
            "{how}"
        );
    }
    drop(reader);
    let path = folder.path("hard");
    fs::hard_link(&kept, &path).unwrap();
    let opened = open(Path::new(&path), Opening::Emptied, Access::Umask).unwrap_err();
    assert_eq!(refusal(&opened), &Refused::HardLink(path.into()));
    assert_eq!(text(&kept), "kept");
    assert!(!Path::new(&victim.path("missing")).exists());
    // Files of the caller's are written there.
    let own = folder.path("own");
    for (how, done) in all(&own) {
        done.unwrap_or_else(|error| panic!("{how}: {error}"));
    }
}

#[test]
fn folders_that_others_can_change_are_refused() {
    if !is_root() {
        return;
    }
    let folder = Folder::new("files-foreign");
    let (foreign, below) = (folder.path("foreign"), folder.path("foreign/own"));
    fs::create_dir_all(&below).unwrap();
    give(&foreign);
    let link = folder.path("link");
    symlink(&foreign, &link).unwrap();
    for path in [&foreign, &below, &link].map(|it| format!("{it}/file")) {
        for (how, done) in all(&path) {
            let error = done.expect_err(how);
            let refused = refusal(&error);
            assert!(
                matches!(refused, Refused::ForeignFolder(_, OTHER)),
                "{how}: {refused:?}"
            );
        }
        make_folders(Path::new(&path)).unwrap_err();
        make_private_folder(Path::new(&path)).unwrap_err();
        write_new(Path::new(&path), Access::Owner, "secret").unwrap_err();
        assert!(!Path::new(&path).exists());
    }
    // Who owns the link may lead it elsewhere at any time.
    let good = Folder::new("files-good");
    let elsewhere = folder.path("elsewhere");
    symlink(good.folder(), &elsewhere).unwrap();
    give(&elsewhere);
    let error = write(Path::new(&format!("{elsewhere}/file")), Access::Umask, "").unwrap_err();
    assert!(matches!(refusal(&error), Refused::ForeignLink(..)));
    chown(&foreign, Some(0), None).unwrap();
    write(Path::new(&format!("{foreign}/file")), Access::Umask, "").unwrap();

    let open_to_all = shared("files-open", 0o777);
    write(Path::new(&open_to_all.path("file")), Access::Umask, "").unwrap();
    let below = open_to_all.path("below");
    fs::create_dir(&below).unwrap();
    for (how, done) in all(&format!("{below}/file")) {
        assert!(
            matches!(refusal(&done.expect_err(how)), Refused::OpenFolder(_)),
            "{how}"
        );
    }
}
