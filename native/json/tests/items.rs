//! Splitting JSON files into documents.

use proptest::prelude::*;
use rillbase_json::{FileItem, ItemReader, ItemsFailure};

fn cut(file: &[u8], size: usize) -> Result<Vec<(u64, String)>, ItemsFailure> {
    let items = read(ItemReader::new(64).one_line(), file, size)?;
    let text = |item: FileItem| (item.line, String::from_utf8_lossy(&item.text).into());
    Ok(items.into_iter().map(text).collect())
}

fn read(mut reader: ItemReader, file: &[u8], size: usize) -> Result<Vec<FileItem>, ItemsFailure> {
    let mut items = Vec::new();
    for part in file.chunks(size) {
        items.extend(reader.push(part)?);
    }
    reader.finish()?;
    Ok(items)
}

#[test]
fn an_array_is_cut_at_its_commas() {
    let file = br#" [{"a": "],[\"{"},
 {"b": [1,
 {"c": 2}]}, 3 ] "#;
    let items = cut(file, 7).unwrap();
    let expected = [
        (1, r#"{"a": "],[\"{"}"#),
        (2, r#"{"b": [1,  {"c": 2}]}"#),
        (3, "3 "),
    ];
    assert_eq!(items, expected.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn an_item_is_returned_as_it_is_with_its_place() {
    let file = "[{\"ä\": 1}, {\"a\":\r\n 2}\n,  3]".as_bytes();
    let items = read(ItemReader::new(64), file, 1).unwrap();
    let places = items.iter().map(|item| (item.line, item.column));
    assert_eq!(places.collect::<Vec<_>>(), [(1, 2), (1, 12), (3, 4)]);
    assert_eq!(items[1].text, b"{\"a\":\r\n 2}");
}

#[test]
fn objects_may_follow_one_another() {
    assert_eq!(cut(b"\xEF\xBB\xBF{}\n{\"a\":1}", 1).unwrap().len(), 2);
    assert_eq!(cut(b"[]", 1).unwrap(), []);
}

#[test]
fn what_is_no_list_of_documents_is_refused() {
    assert_eq!(cut(b"a,b", 1), Err(ItemsFailure::NoItems));
    assert_eq!(cut(b"[{}{}]", 1), Err(ItemsFailure::Separator { line: 1 }));
    assert_eq!(cut(b"[{},]", 1), Err(ItemsFailure::Separator { line: 1 }));
    assert_eq!(cut(b"[]\n{}", 1), Err(ItemsFailure::Separator { line: 2 }));
    for truncated in ["", "[", "[{}", "{\"a\":", "[{},"] {
        assert_eq!(cut(truncated.as_bytes(), 1), Err(ItemsFailure::Truncated));
    }
    let long = format!("[\n\"{}\"]", "x".repeat(80));
    let failure = ItemsFailure::TooLarge {
        line: 2,
        max_bytes: 64,
    };
    assert_eq!(cut(long.as_bytes(), 9), Err(failure));
}

proptest! {
    #[test]
    fn parts_of_any_size_give_the_same_items(file in "[\\[\\]{},\"\\\\ \n1a]{0,40}") {
        let whole = cut(file.as_bytes(), 64);
        for size in 1..5 {
            prop_assert_eq!(&cut(file.as_bytes(), size), &whole);
        }
    }
}
