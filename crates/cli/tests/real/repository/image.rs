//! The image of Throng: one archive, of OCI and of Docker, that is the same each time.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use testing::folder::Folder;
use testing::program::execute;

const THRONG: &str = env!("CARGO_BIN_EXE_throng");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cluster/throng-image");

/// Makes the image of the binary under test, after `before`, and returns its path.
fn image(folder: &Folder, name: &str, before: &str) -> String {
    let path = folder.path(name);
    let line = format!("{before} exec \"$@\"");
    let script = folder.write(&format!("{name}.sh"), &line);
    execute(&format!("bash {script} {SCRIPT} {path} {THRONG}")).succeeded();
    path
}

/// Takes an archive apart, into a folder.
fn unpack(archive: &str, into: &Path) -> PathBuf {
    fs::create_dir_all(into).unwrap();
    let into_shown = into.display();
    execute(&format!("tar -x -f {archive} -C {into_shown}")).succeeded();
    into.to_owned()
}

fn json(octets: &[u8]) -> Value {
    serde_json::from_slice(octets).unwrap()
}

/// The blob that a descriptor is of, whose size and digest are right; and its path.
fn blob(layout: &Path, descriptor: &Value, kind: &str) -> (Vec<u8>, String) {
    let digest = descriptor["digest"].as_str().unwrap();
    let hash = digest.strip_prefix("sha256:").unwrap();
    let path = format!("blobs/sha256/{hash}");
    let content = fs::read(layout.join(&path)).unwrap();
    let hashed: String = Sha256::digest(&content)
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    assert_eq!(hashed, hash);
    assert_eq!(descriptor["size"], content.len());
    let media_type = format!("application/vnd.oci.image.{kind}");
    assert_eq!(descriptor["mediaType"], media_type);
    (content, path)
}

/// The library that podman and other tools read images by takes it in both ways.
fn assert_readable(archive: &str) {
    for kind in ["oci-archive", "docker-archive"] {
        let read = execute(&format!("skopeo inspect {kind}:{archive}")).succeeded();
        let read = json(read.as_bytes());
        let labels = &read["Labels"];
        assert_eq!(labels["org.opencontainers.image.title"], "throng", "{kind}");
    }
}

#[test]
fn image_is_a_layout_of_oci_and_an_archive_of_docker() {
    let folder = Folder::new("image");
    let archive = image(&folder, "image.tar", "");
    assert_readable(&archive);
    let layout = unpack(&archive, &folder.folder().join("it"));
    let read = |name: &str| json(&fs::read(layout.join(name)).unwrap());
    assert_eq!(read("oci-layout")["imageLayoutVersion"], "1.0.0");
    let version = env!("CARGO_PKG_VERSION");

    let index = read("index.json");
    assert_eq!(index["manifests"].as_array().unwrap().len(), 1);
    let of_index = &index["manifests"][0];
    let full = format!("docker.io/library/throng:{version}");
    let annotations = &of_index["annotations"];
    assert_eq!(annotations["io.containerd.image.name"], full);
    assert_eq!(annotations["org.opencontainers.image.ref.name"], version);
    let (manifest, _) = blob(&layout, of_index, "manifest.v1+json");
    let manifest = json(&manifest);
    let (configuration, configuration_path) = blob(&layout, &manifest["config"], "config.v1+json");
    let configuration = json(&configuration);
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    let (_, layer) = blob(&layout, &manifest["layers"][0], "layer.v1.tar");
    // Layers are not compressed, so that a layer's digest is that of its content.
    let ids = &configuration["rootfs"]["diff_ids"];
    assert_eq!(*ids, serde_json::json!([manifest["layers"][0]["digest"]]));

    let of_docker = serde_json::json!([{
        "Config": configuration_path,
        "RepoTags": [format!("throng:{version}")],
        "Layers": [layer],
    }]);
    assert_eq!(read("manifest.json"), of_docker);

    let run = &configuration["config"];
    assert_eq!(run["User"], "65532:65532");
    assert_eq!(run["Entrypoint"], serde_json::json!(["/throng"]));
    let labels = &run["Labels"];
    assert_eq!(labels["org.opencontainers.image.version"], version);
    let licenses = &labels["org.opencontainers.image.licenses"];
    assert_eq!(licenses, "Apache-2.0 OR MIT");
    let revision = labels["org.opencontainers.image.revision"].as_str();
    assert_eq!(revision.unwrap().len(), 40);

    // All that the binary needs is in it.
    let layer = layout.join(layer).display().to_string();
    let root = unpack(&layer, &folder.folder().join("root"));
    let printed = execute(&format!("chroot {} /throng --version", root.display()));
    assert_eq!(printed.succeeded(), format!("throng {version}\n"));
    let notes = execute(&format!(
        "readelf --notes --sections {}/throng",
        root.display()
    ));
    let notes = notes.succeeded();
    assert!(notes.contains("Build ID: "), "{notes}");
    assert!(!notes.contains(".debug_line"), "{notes}");
}

#[test]
fn image_is_the_same_each_time() {
    let folder = Folder::new("image-twice");
    let first = image(&folder, "first.tar", "umask 077;");
    let second = image(
        &folder,
        "second.tar",
        "umask 022; export LC_ALL=C TZ=Asia/Tokyo;",
    );
    assert!(fs::read(first).unwrap() == fs::read(second).unwrap());
}

#[test]
fn image_with_a_mistake_is_refused() {
    let folder = Folder::new("image-refused");
    let out = folder.path("out.tar");
    let missing = folder.path("missing");
    let made = execute(&format!("{SCRIPT} {out} {missing}"));
    let missing = format!("there is no program `{missing}`");
    made.refused_with(&missing, "cargo build --release");
    assert!(!Path::new(&out).exists());
}
