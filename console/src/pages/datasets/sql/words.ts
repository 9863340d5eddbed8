/** The words of the SQL that statements are written in: DuckDB's. */

/** Highlighted and completed; DuckDB has more. */
export const KEYWORDS =
  "select from where group by having order limit offset with recursive as on using join " +
  "inner left right full outer cross lateral natural semi anti asof union all except " +
  "intersect distinct case when then else end and or not in is null true false between " +
  "like ilike similar to exists any cast try_cast qualify window over partition rows " +
  "range groups unbounded preceding following current row filter within exclude replace " +
  "columns values asc desc nulls first last collate interval at time zone lambda escape " +
  "sample tablesample";

export const TYPES =
  "bigint blob boolean date decimal double float hugeint integer interval json real " +
  "smallint time timestamp timestamptz tinyint ubigint uinteger uuid varchar";

/** Common ones of those in `analytics/sql/functions.py`. */
export const FUNCTIONS =
  "abs any_value approx_count_distinct approx_quantile arg_max arg_min array_agg avg " +
  "bool_and bool_or ceil coalesce concat contains corr count count_if cume_dist date_diff " +
  "date_part date_trunc dayname dense_rank ends_with epoch first first_value floor " +
  "generate_series greatest histogram ifnull json_extract json_extract_string lag last " +
  "last_value lead least len length list list_contains list_filter list_sum " +
  "list_transform ln lower lpad make_date max median min mode monthname now ntile nullif " +
  "percent_rank power quantile_cont quantile_disc range rank regexp_extract " +
  "regexp_matches regexp_replace replace round row_number sign split_part sqrt " +
  "starts_with stddev strftime string_agg strptime substring sum time_bucket to_timestamp " +
  "trim typeof unnest upper variance year";

/** Names that are no columns without quotes. */
const RESERVED = new Set(
  (
    "all analyse analyze and anti any array as asc asof asymmetric at authorization binary " +
    "both by case cast check collate collation column columns concurrently constraint " +
    "create cross default deferrable desc describe distinct do else end except false fetch " +
    "for foreign freeze from full generated glob group having ilike in initially inner " +
    "intersect into is isnull join lambda lateral leading left like limit map natural not " +
    "notnull null offset on only or order outer overlaps pivot pivot_longer pivot_wider " +
    "placing positional primary qualify references returning right select semi show similar " +
    "some struct summarize symmetric table tablesample then to trailing true try_cast union " +
    "unique unpack unpivot using variadic verbose when where window with"
  ).split(" "),
);

/** Returns a name as a statement has it. */
export function quoted(name: string): string {
  if (/^[a-z_]\w*$/i.test(name) && !RESERVED.has(name.toLowerCase())) return name;
  return `"${name.replaceAll('"', '""')}"`;
}
