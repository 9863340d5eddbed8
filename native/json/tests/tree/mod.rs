//! A sink that builds a tree, as a simple model of the reader's events.

use std::convert::Infallible;

use rillbase_json::{
    Integer, JsonErrorCode, JsonLimits, JsonLocation, JsonSink, ReadFailure, read,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Boolean(bool),
    Integer(i64),
    Large(String),
    Double(f64),
    String(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// The document, or what is wrong and where.
pub(crate) fn tree(
    input: &[u8],
    limits: &JsonLimits,
) -> Result<Tree, (JsonErrorCode, JsonLocation)> {
    let mut builder = Builder::default();
    match read(input, limits, &mut builder) {
        Ok(()) => Ok(builder.root.expect("a document was told")),
        Err(ReadFailure::Json(error)) => Err((error.code, error.location)),
        Err(ReadFailure::Sink { error, .. }) => match error {},
    }
}

#[derive(Default)]
struct Builder {
    root: Option<Tree>,
    open: Vec<Tree>,
    keys: Vec<String>,
}

impl Builder {
    fn add(&mut self, value: Tree) {
        match self.open.last_mut() {
            None => assert!(self.root.replace(value).is_none(), "one document was told"),
            Some(Tree::Array(items)) => items.push(value),
            Some(Tree::Object(members)) => {
                members.push((self.keys.pop().expect("a key was told first"), value));
            }
            Some(other) => panic!("{other:?} is no container"),
        }
    }

    fn close(&mut self) {
        let closed = self.open.pop().expect("a container is open");
        self.add(closed);
    }
}

impl JsonSink for Builder {
    type Error = Infallible;

    fn null(&mut self) -> Result<(), Infallible> {
        self.add(Tree::Null);
        Ok(())
    }
    fn boolean(&mut self, value: bool) -> Result<(), Infallible> {
        self.add(Tree::Boolean(value));
        Ok(())
    }
    fn integer(&mut self, value: Integer<'_>) -> Result<(), Infallible> {
        self.add(match value {
            Integer::Small(value) => Tree::Integer(value),
            Integer::Large(digits) => Tree::Large(digits.to_owned()),
        });
        Ok(())
    }
    fn double(&mut self, value: f64) -> Result<(), Infallible> {
        self.add(Tree::Double(value));
        Ok(())
    }
    fn string(&mut self, value: &str) -> Result<(), Infallible> {
        self.add(Tree::String(value.to_owned()));
        Ok(())
    }
    fn begin_object(&mut self) -> Result<(), Infallible> {
        self.open.push(Tree::Object(Vec::new()));
        Ok(())
    }
    fn key(&mut self, key: &str) -> Result<(), Infallible> {
        self.keys.push(key.to_owned());
        Ok(())
    }
    fn end_object(&mut self) -> Result<(), Infallible> {
        self.close();
        Ok(())
    }
    fn begin_array(&mut self) -> Result<(), Infallible> {
        self.open.push(Tree::Array(Vec::new()));
        Ok(())
    }
    fn end_array(&mut self) -> Result<(), Infallible> {
        self.close();
        Ok(())
    }
}
