"""Errors of documents and of queries over them."""

from __future__ import annotations

from foundation.errors.api_error import ApiError


class InvalidDocument(ApiError):
    status = 400
    code = "invalid_document"
    title = "The document is not accepted"


class InvalidId(ApiError):
    status = 400
    code = "invalid_id"
    title = "The _id is not accepted"


class InvalidBson(ApiError):
    status = 400
    code = "invalid_bson"
    title = "The document is not valid BSON"


class InvalidJson(ApiError):
    status = 400
    code = "invalid_json"
    title = "The text is not Extended JSON"


class DocumentTooLarge(ApiError):
    status = 413
    code = "document_too_large"
    title = "The document is too large"


class ArrayTooLong(ApiError):
    status = 413
    code = "array_too_long"
    title = "An array has too many elements"


class DocumentTooComplex(ApiError):
    status = 413
    code = "document_too_complex"
    title = "The document has too many values"


class NestingTooDeep(ApiError):
    status = 400
    code = "nesting_too_deep"
    title = "The nesting is too deep"


class InvalidFilter(ApiError):
    status = 400
    code = "invalid_filter"
    title = "The filter is not valid"


class FilterTooLarge(ApiError):
    status = 400
    code = "filter_too_large"
    title = "The filter is too large"


class UnsupportedOperator(ApiError):
    status = 400
    code = "unsupported_operator"
    title = "The operator is not supported"


class InvalidRegex(ApiError):
    status = 400
    code = "invalid_regex"
    title = "The regular expression is not accepted"


class InvalidSort(ApiError):
    status = 400
    code = "invalid_sort"
    title = "The sort is not valid"


class InvalidProjection(ApiError):
    status = 400
    code = "invalid_projection"
    title = "The projection is not valid"


class InvalidGroup(ApiError):
    status = 400
    code = "invalid_group"
    title = "The group is not valid"


class InvalidLookup(ApiError):
    status = 400
    code = "invalid_lookup"
    title = "The lookup is not valid"


class InvalidUpdate(ApiError):
    status = 400
    code = "invalid_update"
    title = "The update is not valid"


class InvalidExpression(ApiError):
    status = 400
    code = "invalid_expression"
    title = "The expression is not valid"


class InvalidSchema(ApiError):
    status = 400
    code = "invalid_schema"
    title = "The JSON Schema is not valid"


class InvalidGeometry(ApiError):
    status = 400
    code = "invalid_geometry"
    title = "The geometry is not valid"


class QueryTooExpensive(ApiError):
    status = 422
    code = "query_too_expensive"
    title = "The query is too expensive"


class ResultTooLarge(ApiError):
    status = 422
    code = "result_too_large"
    title = "The result has too many rows for a live query"


class EvaluationFailed(ApiError):
    status = 400
    code = "evaluation_failed"
    title = "An expression could not be evaluated"


class DuplicateId(ApiError):
    status = 409
    code = "duplicate_id"
    title = "A document with this _id already exists"


class DuplicateKey(ApiError):
    status = 409
    code = "duplicate_key"
    title = "Another document has the same key in a unique index"


class IndexKeyTooLong(ApiError):
    status = 400
    code = "index_key_too_long"
    title = "A key of a unique index is too long"
