//! Regular expressions: what they match, and what is rejected.

use rillbase_query::pattern::Pattern;

#[test]
fn patterns_mean_what_they_mean_in_pcre() {
    for (pattern, options, text, expected) in [
        ("^a.c$", "", "abc", true),
        ("^a.c$", "", "abc\n", true),
        ("^b", "", "a\nb", false),
        ("^b", "m", "a\nb", true),
        ("a.b", "", "a\nb", false),
        ("a.b", "s", "a\nb", true),
        ("ÉCOLE", "i", "école", true),
        (r"\d", "", "٣", false),
        (r"\w+", "", "é", false),
        (r"\bcat\b", "", "a cat.", true),
        ("a{,2}b", "", "aab", true),
        ("a{x", "", "a{x", true),
        ("]", "", "]", true),
        ("[]a]", "", "]", true),
        ("[a&&b]", "", "&", true),
        ("[a-z&&[^b]]", "", "b]", true),
        (r"[\w.-]+@", "", "x.y-z@", true),
        ("[+--]", "", ",", true),
        ("[-a]", "", "-", true),
        ("a b # c", "x", "ab", true),
        ("[ #]", "x", " ", true),
        (r"\Qa.b\E", "", "a.b", true),
        (r"\Qa.b\E", "", "axb", false),
        (r"\x41\x{42}", "", "AB", true),
        (r"\p{Lu}\pL", "", "Éa", true),
        ("[[:alpha:]]", "", "x", true),
        (r"a\/b", "", "a/b", true),
        ("(?i)abc", "", "ABC", true),
        ("(?<y>a)(?'z'b)", "", "ab", true),
        ("", "", "anything", true),
    ] {
        let compiled =
            Pattern::new(pattern, options).unwrap_or_else(|why| panic!("{pattern}: {why}"));
        assert_eq!(
            compiled.is_match(text),
            expected,
            "/{pattern}/{options} on {text:?}"
        );
    }
}

#[test]
fn patterns_that_need_backtracking_are_rejected_by_name() {
    for (pattern, name) in [
        ("a(?=b)", "look-ahead"),
        ("a(?!b)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        (r"(a)\1", "back-reference"),
        (r"(?<x>a)\k<x>", "back-reference"),
        ("(?>a)b", "atomic"),
        ("a++", "possessive"),
        ("a*+", "possessive"),
        ("a{2}+", "possessive"),
        ("(?R)", "recursion"),
        ("(?(1)a)", "condition"),
        ("(*SKIP)a", "verb"),
        ("(a", "unclosed"),
        ("[a", "not closed"),
        ("(a{1000}){1000}", "compiled"),
    ] {
        let why = Pattern::new(pattern, "").expect_err(pattern);
        assert!(why.contains(name), "/{pattern}/: {why}");
    }
    assert!(Pattern::new("a", "g").is_err());
}
