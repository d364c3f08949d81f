//! The committed header is what this crate says. `BLESS=1 cargo test -p crossover-plugin --test
//! header` writes it anew.

use std::path::Path;

/// In the order in which the header has them.
const SOURCES: [&str; 8] = [
    "failure.rs",
    "words.rs",
    "config.rs",
    "group.rs",
    "collective.rs",
    "capture.rs",
    "notes.rs",
    "report.rs",
];

#[test]
fn the_committed_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join("src").join(source));
    }
    let mut written = Vec::new();
    builder.generate().expect("a header").write(&mut written);
    let header = String::from_utf8(written).expect("text");
    // What Rust's documentation has a heading for.
    let header = header.replace("// # Safety\n//\n// ", "// Safety: ");

    let path = root.join("include/crossover.h");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &header).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == header,
        "{} is not current: BLESS=1 cargo test -p crossover-plugin --test header",
        path.display()
    );
    every_exported_function_is_in(&header, root);
}

/// A source that `SOURCES` forgets exports what no header tells.
fn every_exported_function_is_in(header: &str, root: &Path) {
    let mut exported = 0;
    for entry in std::fs::read_dir(root.join("src")).expect("sources") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a source");
        for after in text.split("#[unsafe(no_mangle)]").skip(1) {
            let name = after.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
            let name = name.expect("a function").0;
            assert!(header.contains(&format!("{name}(")), "{name}");
            exported += 1;
        }
    }
    assert!(exported > 10, "{exported}");
}
