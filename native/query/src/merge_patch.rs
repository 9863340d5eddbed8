//! JSON Merge Patch (RFC 7396) on documents.

use crate::bson::{Document, DocumentBuf, DocumentWriter, ValueRef};

/// The document with the patch applied: null removes a member, a document is merged into a
/// document, and anything else replaces the member. Members keep their positions; new ones follow
/// in the order of the patch.
#[must_use]
pub fn merge_patch(target: Document<'_>, patch: Document<'_>) -> DocumentBuf {
    let mut writer = DocumentWriter::with_capacity(target.as_bytes().len());
    for element in target.elements() {
        let (Some(key), Some(value)) = (element.key(), element.value()) else {
            continue;
        };
        match patch.get(key) {
            None => writer.append_element(&element),
            Some(ValueRef::Null) => {}
            Some(change) => append(&mut writer, key, Some(value), change),
        }
    }
    for (key, change) in patch.iter() {
        if target.get(key).is_none() && !matches!(change, ValueRef::Null) {
            append(&mut writer, key, None, change);
        }
    }
    writer.into()
}

fn append(
    writer: &mut DocumentWriter,
    key: &str,
    target: Option<ValueRef<'_>>,
    change: ValueRef<'_>,
) {
    let ValueRef::Document(change) = change else {
        return writer.append(key, change);
    };
    let target = target
        .and_then(|target| target.as_document())
        .unwrap_or_else(Document::empty);
    writer.append(
        key,
        ValueRef::Document(merge_patch(target, change).as_ref()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ejson::{Form, document_to_string, parse_document};

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (target, patch, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            (
                r#"{"a":"foo"}"#,
                r#"{"a":{"b":{"c":null}}}"#,
                r#"{"a":{"b":{}}}"#,
            ),
        ] {
            let (target, patch) = (
                parse_document(target.as_bytes()),
                parse_document(patch.as_bytes()),
            );
            let merged = merge_patch(
                target.expect("target").as_ref(),
                patch.expect("patch").as_ref(),
            );
            assert_eq!(document_to_string(merged.as_ref(), Form::Relaxed), result);
        }
    }
}
