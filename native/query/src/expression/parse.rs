//! Parsing expressions.

use super::ExpressionTree;
use super::function::{ArgumentShape, Function};
use crate::bson::{Document, Value, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::limits::{EXPRESSION_DEPTH, FILTER_NODES};
use crate::path::PathSegment;
use crate::pattern::Pattern;

/// The state of parsing: the variables in scope, and what was found.
#[derive(Debug, Default)]
pub(crate) struct ExpressionParser {
    /// Names in scope with their numbers; the latest definition of a name counts.
    scope: Vec<(String, usize)>,
    variables: usize,
    nodes: usize,
    pub(crate) moment: Option<Error>,
}

fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidExpression, location, detail)
}

impl ExpressionParser {
    pub(super) fn expression(
        &mut self,
        value: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        self.nodes += 1;
        if depth > EXPRESSION_DEPTH || self.nodes > 10 * FILTER_NODES {
            let detail = format!(
                "an expression may be nested at most {EXPRESSION_DEPTH} levels deep and have {} nodes",
                10 * FILTER_NODES
            );
            return Err(Error::new(ErrorCode::FilterTooLarge, location, detail));
        }
        match value {
            ValueRef::String(text) => self.text(text, location),
            ValueRef::Document(document) => self.document(document, depth + 1, location),
            ValueRef::Array(array) => {
                let items = array.iter().enumerate();
                let items = items
                    .map(|(index, item)| self.expression(item, depth + 1, &location.index(index)));
                Ok(ExpressionTree::Array(items.collect::<Result<_, _>>()?))
            }
            other => Ok(ExpressionTree::Literal(other.into())),
        }
    }

    /// `$path`, `$$variable.path` or plain text.
    fn text(&mut self, text: &str, location: &ParseLocation<'_>) -> Result<ExpressionTree, Error> {
        if let Some(rest) = text.strip_prefix("$$") {
            let (name, path) = rest
                .split_once('.')
                .map_or((rest, None), |(name, path)| (name, Some(path)));
            let path = path.map_or_else(|| Ok(Box::default()), |path| segments(path, location))?;
            return self.variable(name, path, location);
        }
        match text.strip_prefix('$') {
            Some(path) => Ok(ExpressionTree::Field(segments(path, location)?)),
            None => Ok(ExpressionTree::Literal(Value::String(text.into()))),
        }
    }

    fn variable(
        &mut self,
        name: &str,
        path: Box<[PathSegment]>,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        if let Some((_, number)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return Ok(ExpressionTree::Variable(*number, path));
        }
        match name {
            "ROOT" | "CURRENT" => Ok(ExpressionTree::Field(path)),
            "REMOVE" => Ok(ExpressionTree::Missing),
            "NOW" if path.is_empty() => {
                self.depends_on_moment("$$NOW", location);
                Ok(ExpressionTree::Now)
            }
            _ => Err(refuse(
                location,
                format!("the variable $${name} is not defined"),
            )),
        }
    }

    fn depends_on_moment(&mut self, name: &str, location: &ParseLocation<'_>) {
        let detail =
            format!("{name} depends on the current time, which a live query does not support");
        self.moment
            .get_or_insert_with(|| Error::new(ErrorCode::NotLive, location, detail));
    }

    /// One operator, or a document to build.
    fn document(
        &mut self,
        document: Document<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        let first = document.iter().next();
        if let Some((name, argument)) = first.filter(|(name, _)| name.starts_with('$')) {
            if document.len() != 1 {
                return Err(refuse(
                    location,
                    "an operator must be the only member of its document",
                ));
            }
            return self.operator(name, argument, depth, &location.key(name));
        }
        let mut fields: Vec<(String, ExpressionTree)> = Vec::new();
        for (name, value) in document.iter() {
            let here = location.key(name);
            if name.starts_with('$') || name.contains('.') {
                return Err(refuse(
                    &here,
                    "the name of a new field must not start with '$' or contain dots",
                ));
            }
            fields.push((name.to_owned(), self.expression(value, depth, &here)?));
        }
        Ok(ExpressionTree::Document(fields))
    }

    fn operator(
        &mut self,
        name: &str,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        match name {
            "$literal" | "$const" => Ok(ExpressionTree::Literal(argument.into())),
            "$and" => Ok(ExpressionTree::And(self.list(argument, depth, location)?)),
            "$or" => Ok(ExpressionTree::Or(self.list(argument, depth, location)?)),
            "$ifNull" => {
                let items = self.list(argument, depth, location)?;
                if items.len() < 2 {
                    Err(refuse(location, "$ifNull takes two or more"))
                } else {
                    Ok(ExpressionTree::IfNull(items))
                }
            }
            "$cond" => self.condition(argument, depth, location),
            "$switch" => self.switch(argument, depth, location),
            "$let" => self.bindings(argument, depth, location),
            "$map" | "$filter" => self.over_array(name, argument, depth, location),
            "$reduce" => self.reduce(argument, depth, location),
            "$rand" => {
                self.depends_on_moment(name, location);
                Err(Error::new(
                    ErrorCode::UnsupportedOperator,
                    location,
                    "$rand is not supported, because results must be repeatable",
                ))
            }
            _ => self.call(name, argument, depth, location),
        }
    }

    fn list(
        &mut self,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<Vec<ExpressionTree>, Error> {
        match argument {
            ValueRef::Array(array) => {
                let items = array.iter().enumerate();
                items
                    .map(|(index, item)| self.expression(item, depth + 1, &location.index(index)))
                    .collect()
            }
            other => Ok(vec![self.expression(other, depth + 1, location)?]),
        }
    }

    fn call(
        &mut self,
        name: &str,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        let Some((function, shape)) = Function::from_name(name) else {
            let detail = match name {
                "$function" | "$accumulator" | "$where" => {
                    format!("{name} runs JavaScript, which is never allowed")
                }
                _ => format!("the expression {name} is unknown or not supported"),
            };
            return Err(Error::new(ErrorCode::UnsupportedOperator, location, detail));
        };
        let args = match shape {
            ArgumentShape::List(least, most) => {
                let items = self.list(argument, depth, location)?;
                if items.len() < least || items.len() > most {
                    return Err(refuse(
                        location,
                        format!(
                            "{name} takes {least} to {most} arguments, not {}",
                            items.len()
                        ),
                    ));
                }
                items.into_iter().map(Some).collect()
            }
            ArgumentShape::Named(names, required) => {
                self.named(name, names, required, argument, depth, location)?
            }
        };
        if matches!(
            function,
            Function::RegexMatch | Function::RegexFind | Function::RegexFindAll
        ) {
            return constant_pattern(function, args, location);
        }
        Ok(ExpressionTree::Call(function, args))
    }

    /// Arguments by name. The functions of a date, and `$getField`, also take
    /// their first argument alone.
    fn named(
        &mut self,
        name: &str,
        names: &[&str],
        required: usize,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<Vec<Option<ExpressionTree>>, Error> {
        let alone =
            matches!(names, ["date", "timezone"] | ["field", "input"]) && name != "$unsetField";
        let has_operator = |inner: &Document<'_>| {
            inner
                .iter()
                .next()
                .is_some_and(|(key, _)| key.starts_with('$'))
        };
        let fields = argument
            .as_document()
            .filter(|inner| !alone || !has_operator(inner));
        let Some(fields) = fields else {
            if !alone {
                return Err(refuse(
                    location,
                    format!("{name} takes a document of {}", names.join(", ")),
                ));
            }
            let argument = argument
                .as_array()
                .filter(|array| array.len() == 1)
                .and_then(|array| array.get(0))
                .unwrap_or(argument);
            return Ok(vec![Some(self.expression(
                argument,
                depth + 1,
                location,
            )?)]);
        };
        let mut args: Vec<Option<ExpressionTree>> = vec![None; names.len()];
        for (key, value) in fields.iter() {
            let here = location.key(key);
            let slot = names
                .iter()
                .position(|known| *known == key)
                .and_then(|index| args.get_mut(index));
            let Some(slot) = slot else {
                return Err(refuse(&here, format!("{name} takes {}", names.join(", "))));
            };
            *slot = Some(self.expression(value, depth + 1, &here)?);
        }
        if let Some(index) = args.iter().take(required).position(Option::is_none) {
            let missing = names.get(index).copied().unwrap_or_default();
            return Err(refuse(location, format!("{name} needs '{missing}'")));
        }
        Ok(args)
    }

    /// The named parts of an operator that evaluates lazily.
    fn parts<'v, const N: usize>(
        argument: ValueRef<'v>,
        names: [&str; N],
        location: &ParseLocation<'_>,
    ) -> Result<[Option<ValueRef<'v>>; N], Error> {
        let Some(document) = argument.as_document() else {
            return Err(refuse(
                location,
                format!("a document of {} is expected", names.join(", ")),
            ));
        };
        if let Some((key, _)) = document.iter().find(|(key, _)| !names.contains(key)) {
            return Err(refuse(
                &location.key(key),
                format!("only {} are allowed here", names.join(", ")),
            ));
        }
        Ok(names.map(|name| document.get(name)))
    }

    fn required(
        &mut self,
        value: Option<ValueRef<'_>>,
        name: &str,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<Box<ExpressionTree>, Error> {
        let value = value.ok_or_else(|| refuse(location, format!("'{name}' is missing")))?;
        self.expression(value, depth + 1, &location.key(name))
            .map(Box::new)
    }

    fn condition(
        &mut self,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        if argument.as_array().is_some() {
            let items = self.list(argument, depth, location)?;
            let items: [ExpressionTree; 3] = items
                .try_into()
                .map_err(|_| refuse(location, "$cond takes three: if, then, else"))?;
            return Ok(ExpressionTree::Condition(Box::new(items)));
        }
        let [condition, then, otherwise] = Self::parts(argument, ["if", "then", "else"], location)?;
        let condition = *self.required(condition, "if", depth, location)?;
        let then = *self.required(then, "then", depth, location)?;
        let otherwise = *self.required(otherwise, "else", depth, location)?;
        Ok(ExpressionTree::Condition(Box::new([
            condition, then, otherwise,
        ])))
    }

    fn switch(
        &mut self,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        let [branches, default] = Self::parts(argument, ["branches", "default"], location)?;
        let here = location.key("branches");
        let branches = branches
            .and_then(|branches| branches.as_array())
            .filter(|branches| !branches.is_empty());
        let branches = branches
            .ok_or_else(|| refuse(&here, "$switch takes an array of at least one branch"))?;
        let mut parsed = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let at = here.index(index);
            let [case, then] = Self::parts(branch, ["case", "then"], &at)?;
            parsed.push((
                *self.required(case, "case", depth, &at)?,
                *self.required(then, "then", depth, &at)?,
            ));
        }
        let default = match default {
            Some(_) => Some(self.required(default, "default", depth, location)?),
            None => None,
        };
        Ok(ExpressionTree::Switch(parsed, default))
    }

    fn bind(&mut self, name: &str, location: &ParseLocation<'_>) -> Result<usize, Error> {
        let well_formed = name
            .starts_with(|letter: char| letter.is_ascii_lowercase() || !letter.is_ascii())
            && name.chars().all(|letter| {
                letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii()
            });
        if !well_formed {
            return Err(refuse(
                location,
                "a variable's name is a lower-case letter, then letters, digits and _",
            ));
        }
        self.variables += 1;
        self.scope.push((name.to_owned(), self.variables - 1));
        Ok(self.variables - 1)
    }

    fn bindings(
        &mut self,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        let [vars, result] = Self::parts(argument, ["vars", "in"], location)?;
        let here = location.key("vars");
        let vars = vars
            .and_then(|vars| vars.as_document())
            .ok_or_else(|| refuse(&here, "vars is a document"))?;
        let mut values = Vec::new();
        // All values are those of the outer scope.
        for (name, value) in vars.iter() {
            values.push((name, self.expression(value, depth + 1, &here.key(name))?));
        }
        let outer = self.scope.len();
        let mut bound = Vec::new();
        for (name, value) in values {
            bound.push((self.bind(name, &here.key(name))?, value));
        }
        let result = self.required(result, "in", depth, location);
        self.scope.truncate(outer);
        Ok(ExpressionTree::Let(bound, result?))
    }

    fn over_array(
        &mut self,
        name: &str,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        let body = if name == "$map" { "in" } else { "cond" };
        let [input, each, result, limit] =
            Self::parts(argument, ["input", "as", body, "limit"], location)?;
        let input = self.required(input, "input", depth, location)?;
        let limit = match limit {
            Some(_) if name == "$filter" => Some(self.required(limit, "limit", depth, location)?),
            Some(_) => return Err(refuse(&location.key("limit"), "$map has no limit")),
            None => None,
        };
        let each = match each {
            None => "this",
            Some(ValueRef::String(each)) => each,
            Some(_) => return Err(refuse(&location.key("as"), "a variable's name is a string")),
        };
        let outer = self.scope.len();
        let number = self.bind(each, &location.key("as"))?;
        let result = self.required(result, body, depth, location);
        self.scope.truncate(outer);
        let result = result?;
        Ok(match name {
            "$map" => ExpressionTree::Map {
                input,
                each: number,
                result,
            },
            _ => ExpressionTree::Filter {
                input,
                each: number,
                keep: result,
                limit,
            },
        })
    }

    fn reduce(
        &mut self,
        argument: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<ExpressionTree, Error> {
        let [input, initial, result] =
            Self::parts(argument, ["input", "initialValue", "in"], location)?;
        let input = self.required(input, "input", depth, location)?;
        let initial = self.required(initial, "initialValue", depth, location)?;
        let outer = self.scope.len();
        let (each, sum) = (self.bind("this", location)?, self.bind("value", location)?);
        let result = self.required(result, "in", depth, location);
        self.scope.truncate(outer);
        Ok(ExpressionTree::Reduce {
            input,
            initial,
            each,
            sum,
            result: result?,
        })
    }
}

/// Compiles a regular expression that does not depend on the document.
fn constant_pattern(
    function: Function,
    mut args: Vec<Option<ExpressionTree>>,
    location: &ParseLocation<'_>,
) -> Result<ExpressionTree, Error> {
    let source = match args.get(1) {
        Some(Some(ExpressionTree::Literal(Value::String(source)))) => {
            Some((source.clone(), String::new()))
        }
        Some(Some(ExpressionTree::Literal(Value::Regex(source, options)))) => {
            Some((source.clone(), options.clone()))
        }
        _ => None,
    };
    let beside = match args.get(2) {
        Some(Some(ExpressionTree::Literal(Value::String(options)))) => Some(options.clone()),
        Some(None) => Some(String::new()),
        _ => None,
    };
    let (Some((source, options)), Some(beside)) = (source, beside) else {
        return Ok(ExpressionTree::Call(function, args));
    };
    let here = location.key("regex");
    if !options.is_empty() && !beside.is_empty() {
        return Err(refuse(
            &here,
            "options are allowed in the regular expression or in options, not in both",
        ));
    }
    let pattern = Pattern::new(&source, &(options + &beside));
    let pattern = pattern.map_err(|why| Error::new(ErrorCode::InvalidRegex, &here, why))?;
    let input = args
        .first_mut()
        .and_then(Option::take)
        .unwrap_or(ExpressionTree::Missing);
    Ok(ExpressionTree::Pattern(
        function,
        Box::new(pattern),
        Box::new(input),
    ))
}

fn segments(path: &str, location: &ParseLocation<'_>) -> Result<Box<[PathSegment]>, Error> {
    if path
        .split('.')
        .any(|part| part.is_empty() || part.starts_with('$'))
    {
        return Err(refuse(
            location,
            "a field path must not have empty parts or parts that start with '$'",
        ));
    }
    Ok(path.split('.').map(PathSegment::new).collect())
}
