//! Whole sessions of the command line against their golden output; `TRYCMD=overwrite cargo test -p espalier` rewrites it.

#[test]
fn sessions() {
    trycmd::TestCases::new().case("tests/cli/*.trycmd");
}
