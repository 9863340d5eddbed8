//! What files mean: records, problems and lines.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unnecessary_wraps,
    reason = "tests"
)]

use proptest::prelude::*;
use rillbase_csv::dialect::{guess_delimiter, guess_type};
use rillbase_csv::reader::{CsvFailure, CsvReader, MAX_FIELDS, MAX_RECORD_BYTES};
use rillbase_csv::records::{CsvRecords, RecordProblem};
use rillbase_csv::typed::CsvType;
use rillbase_csv::writer::CsvWriter;
use rillbase_query::bson::{DocumentWriter, ValueRef};

type Fields = Vec<Option<String>>;
/// A record's line, and its fields or its problem.
type Records = Vec<(u64, Result<Fields, RecordProblem>)>;

fn read(file: &[u8]) -> Records {
    read_in_parts(file, file.len().max(1)).unwrap()
}

fn read_in_parts(file: &[u8], size: usize) -> Result<Records, CsvFailure> {
    let mut reader = CsvReader::new(b',');
    let mut records = Vec::new();
    for part in file.chunks(size) {
        collect(&mut records, &reader.push(part)?);
    }
    collect(&mut records, &reader.finish()?);
    Ok(records)
}

fn collect(all: &mut Records, records: &CsvRecords) {
    for record in records.iter() {
        let fields = record
            .iter()
            .map(|field| field.map(str::to_owned))
            .collect();
        all.push((record.line, record.problem.map_or(Ok(fields), Err)));
    }
}

fn texts(fields: &[&str]) -> Result<Fields, RecordProblem> {
    let owned = |text: &&str| (*text != "-").then(|| (*text).to_owned());
    Ok(fields.iter().map(owned).collect())
}

#[test]
fn quotes_delimiters_and_line_ends_stand_inside_quoted_fields() {
    let file = b"a,b\r\n\"x, \"\"y\"\"\",\"two\nlines\"\n1,2";
    assert_eq!(
        read(file),
        [
            (1, texts(&["a", "b"])),
            (2, texts(&["x, \"y\"", "two\nlines"])),
            (4, texts(&["1", "2"])),
        ]
    );
}

#[test]
fn an_empty_field_is_no_value_unless_it_is_quoted() {
    assert_eq!(read(b"-,\"\"\n,x\n")[1].1, texts(&["-", "x"]));
    assert_eq!(read(b"a,\"\"\n")[0].1, texts(&["a", ""]));
}

#[test]
fn lines_end_with_any_line_end_and_blank_ones_are_skipped() {
    let lines: Vec<u64> = read(b"a\r\rb\n\n\r\nc\r\nd")
        .iter()
        .map(|(line, _)| *line)
        .collect();
    assert_eq!(lines, [1, 3, 6, 7]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_name() {
    for size in 1..6 {
        let records = read_in_parts(b"\xEF\xBB\xBFid\n1\n", size).unwrap();
        assert_eq!(records[0].1, texts(&["id"]));
    }
    assert_eq!(read(b"a")[0].1, texts(&["a"]));
}

#[test]
fn a_malformed_record_is_an_error_and_the_next_one_is_read() {
    let file = b"a,b\n6\" pipe,1\n\"x\"y,2\n1,2,3\n\xFF,1\nz\0,1\n3,4\n";
    let records = read(file);
    let problems: Vec<_> = records
        .iter()
        .filter_map(|(line, record)| Some((*line, record.clone().err()?)))
        .collect();
    assert_eq!(
        problems,
        [
            (2, RecordProblem::StrayQuote),
            (3, RecordProblem::TextAfterQuote),
            (4, RecordProblem::Width { has: 3, first: 2 }),
            (5, RecordProblem::NotUtf8),
            (6, RecordProblem::Nul),
        ]
    );
    assert_eq!(records.last().unwrap().1, texts(&["3", "4"]));
}

#[test]
fn a_character_divided_between_two_fields_is_not_utf8() {
    assert_eq!(read(b"\xC3,\xA9\n")[0].1, Err(RecordProblem::NotUtf8));
}

#[test]
fn a_quote_that_is_never_closed_is_an_error_of_its_record() {
    let records = read(b"a\n\"x\ny\n");
    assert_eq!(records[1], (2, Err(RecordProblem::UnclosedQuote)));
}

#[test]
fn sizes_are_bounded() {
    let wide = ",".repeat(MAX_FIELDS);
    assert_eq!(
        read(wide.as_bytes())[0].1,
        Err(RecordProblem::TooManyFields)
    );
    assert!(read(&wide.as_bytes()[1..])[0].1.is_ok());
    let long = [b"a\n\"".as_slice(), &vec![b'x'; MAX_RECORD_BYTES]].concat();
    let failure = read_in_parts(&long, 1 << 16).unwrap_err();
    assert_eq!(failure, CsvFailure::RecordTooLarge { line: 2 });
}

#[test]
fn utf_16_is_refused_by_name() {
    let file = b"\xFF\xFEi\0d\0\n\0";
    assert_eq!(read_in_parts(file, 1).unwrap_err(), CsvFailure::Utf16);
}

#[test]
fn the_delimiter_is_the_one_that_divides_most_records_alike() {
    assert_eq!(guess_delimiter(b"a;b\n1,5;2\n3;4,5\n"), b';');
    assert_eq!(guess_delimiter(b"a\tb\n\"x,y\"\t2\n"), b'\t');
    assert_eq!(guess_delimiter(b"only\none\n"), b',');
}

#[test]
fn the_type_of_a_column_is_the_one_that_all_values_have() {
    let guessed = |values: &str| {
        let file = format!("header\n{values}");
        let records = CsvReader::new(b';').push(file.as_bytes()).unwrap();
        guess_type(&records, 1, 0)
    };
    assert_eq!(guessed("1\n-2.5e3\n"), CsvType::Number);
    assert_eq!(guessed("007\n"), CsvType::Text);
    assert_eq!(guessed("12345678901234567890\n"), CsvType::Text);
    assert_eq!(guessed("true\nFALSE\n"), CsvType::Boolean);
    assert_eq!(guessed("2026-11-21\n2026-11-21 08:00\n"), CsvType::Date);
    assert_eq!(guessed("2026-13-01\n"), CsvType::Text);
    assert_eq!(guessed("6740a1b2c3d4e5f601234567\n"), CsvType::ObjectId);
    assert_eq!(guessed("{}\n[1]\n"), CsvType::Json);
    assert_eq!(guessed("\n\"\"\n"), CsvType::Text);
}

fn written(names: &[String], values: &[Option<String>]) -> String {
    let mut document = DocumentWriter::new();
    for (name, value) in names.iter().zip(values) {
        if let Some(text) = value {
            document.append(name, ValueRef::String(text));
        }
    }
    let bytes = document.finish();
    let mut out = String::new();
    let writer = CsvWriter::new(names, b',', false);
    writer.row(&mut out, rillbase_query::bson::Document::trusted(&bytes));
    out
}

proptest! {
    #[test]
    fn parts_of_any_size_give_the_same_records(file in proptest::collection::vec(
        prop_oneof![Just(b'"'), Just(b','), Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()], 0..60,
    )) {
        let whole = read_in_parts(&file, file.len().max(1));
        for size in 1..5 {
            prop_assert_eq!(&read_in_parts(&file, size), &whole);
        }
    }

    #[test]
    fn what_is_written_is_read_back(values in proptest::collection::vec(
        proptest::option::of("[a,\"\n\r =\t\u{e9}-]{0,6}"), 1..5,
    )) {
        let names: Vec<String> = (0..values.len()).map(|place| format!("f{place}")).collect();
        let line = written(&names, &values);
        let records = read(line.as_bytes());
        prop_assert_eq!(records.len(), 1);
        let expected = if values == [None] { vec![Some(String::new())] } else { values };
        prop_assert_eq!(records[0].1.clone(), Ok(expected));
    }
}
