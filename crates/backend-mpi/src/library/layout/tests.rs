//! The layout beside a real header's: a C program prints what that has.

use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use super::*;

const PROGRAM: &str = r#"
#include <mpi_abi.h>
#include <stddef.h>
#include <stdio.h>
int main(void) {
    printf("%d %zx %zx %zx %zx %zx %zx %zx %zx %d %d %d %d\n", MPI_ABI_VERSION, (size_t)MPI_COMM_NULL,
           (size_t)MPI_COMM_WORLD, (size_t)MPI_COMM_SELF, (size_t)MPI_BYTE, (size_t)MPI_ERRHANDLER_NULL,
           (size_t)MPI_ERRORS_RETURN, (size_t)MPI_GROUP_NULL, (size_t)MPI_REQUEST_NULL, MPI_SUCCESS, MPI_THREAD_MULTIPLE, MPI_MAX_ERROR_STRING,
           MPI_MAX_LIBRARY_VERSION_STRING);
    printf("%zu %zu %zu %zu %zu\n", sizeof(MPI_Status), offsetof(MPI_Status, MPI_SOURCE),
           offsetof(MPI_Status, MPI_TAG), offsetof(MPI_Status, MPI_ERROR), sizeof(MPI_Request));
    return MPI_STATUS_IGNORE != NULL;
}
"#;

#[test]
fn is_that_of_a_real_header() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let include = root.join("target/toolchains/mpich-5.0.2/include");
    if !include.join("mpi_abi.h").exists() {
        return skip("there is no MPI header here; `cargo xtask mpi` fetches one");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
    std::fs::write(&source, PROGRAM).expect("it is written");
    let compiled =
        Command::new("cc").arg("-I").arg(include).arg("-o").arg(&program).arg(&source).output();
    let Ok(compiled) = compiled else { return skip("there is no C compiler here") };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let told = Command::new(&program).output().expect("it runs");
    assert!(told.status.success(), "to want no status is another pointer than null");
    let ours = format!(
        "1 {:x} {:x} {:x} {:x} {:x} {:x} {:x} {:x} {SUCCESS} {THREAD_MULTIPLE} {MAX_ERROR_STRING} \
         {MAX_LIBRARY_VERSION_STRING}\n{} {} {} {} {}\n",
        Comm::NULL.0.addr(),
        Comm::WORLD.0.addr(),
        Comm::SELF.0.addr(),
        Datatype::BYTE.0.addr(),
        Errhandler::NULL.0.addr(),
        Errhandler::RETURN.0.addr(),
        Group::NULL.0.addr(),
        Request::NULL.0.addr(),
        size_of::<Status>(),
        offset_of!(Status, source),
        offset_of!(Status, tag),
        offset_of!(Status, error),
        size_of::<Request>(),
    );
    assert_eq!(String::from_utf8_lossy(&told.stdout), ours);
}

#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}
