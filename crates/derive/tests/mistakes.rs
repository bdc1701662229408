//! A mistake in an attribute is reported at that attribute.
//!
//! The `.stderr` files are the output of the compiler of the declared minimum version.

#[test]
fn mistakes_are_shown_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}
