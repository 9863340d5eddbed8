"""Statements that DuckDB and PostgreSQL have to answer alike.

Every order is complete and says where nulls are, since the defaults differ; so does division of
whole numbers.
"""

from __future__ import annotations

_PLAIN = """
SELECT * FROM orders ORDER BY id
SELECT * FROM stock ORDER BY place, item
SELECT id, customer FROM orders WHERE customer IS NULL ORDER BY id
SELECT id FROM orders WHERE customer IS NOT NULL ORDER BY id DESC
SELECT id FROM orders WHERE customer = 'ada' ORDER BY id
SELECT id FROM orders WHERE customer <> 'ada' ORDER BY id
SELECT id FROM orders WHERE NOT (customer = 'ada') ORDER BY id
SELECT id FROM orders WHERE customer IS DISTINCT FROM 'ada' ORDER BY id
SELECT id FROM orders WHERE customer IN ('ada', 'bob') ORDER BY id
SELECT id FROM orders WHERE customer NOT IN ('ada', 'bob') ORDER BY id
SELECT id FROM orders WHERE customer NOT IN ('ada', NULL) ORDER BY id
SELECT id FROM orders WHERE amount > 0.3 ORDER BY id
SELECT id FROM orders WHERE amount BETWEEN -3 AND 2.5 ORDER BY id
SELECT id FROM orders WHERE amount NOT BETWEEN -3 AND 2.5 ORDER BY id
SELECT id FROM orders WHERE count > 2147483646 ORDER BY id
SELECT id FROM orders WHERE count < -2147483647 ORDER BY id
SELECT id FROM orders WHERE paid ORDER BY id
SELECT id FROM orders WHERE NOT paid ORDER BY id
SELECT id FROM orders WHERE paid IS NOT TRUE ORDER BY id
SELECT id FROM orders WHERE paid AND amount IS NULL ORDER BY id
SELECT id FROM orders WHERE paid OR amount IS NULL ORDER BY id
SELECT id, paid AND NULL AS a, paid OR NULL AS o FROM orders ORDER BY id
SELECT id FROM orders WHERE day = DATE '2024-02-29' ORDER BY id
SELECT id FROM orders WHERE day < '1970-01-01' ORDER BY id
SELECT id FROM orders WHERE "at" >= '2026-10-25 00:00:00+00' ORDER BY id
SELECT id FROM orders WHERE "at" < TIMESTAMPTZ '2026-10-25 02:00:00+02' ORDER BY id
SELECT id FROM orders WHERE "at" < '1970-01-01 00:00:00+00' ORDER BY id
SELECT id FROM orders WHERE id % 3 = 1 ORDER BY id
SELECT id, id % 4 AS m, mod(id, 5) AS n FROM orders ORDER BY id
SELECT id FROM orders ORDER BY amount NULLS FIRST, id LIMIT 10
SELECT id FROM orders ORDER BY amount DESC NULLS LAST, id DESC LIMIT 10 OFFSET 5
SELECT id FROM orders ORDER BY customer NULLS LAST, id
SELECT id FROM orders ORDER BY customer DESC NULLS FIRST, id
SELECT id FROM orders ORDER BY paid NULLS LAST, day NULLS FIRST, id
SELECT id FROM orders ORDER BY "at" NULLS FIRST, id
SELECT DISTINCT customer FROM orders ORDER BY customer NULLS LAST
SELECT DISTINCT paid, customer FROM orders ORDER BY paid NULLS LAST, customer NULLS LAST
SELECT DISTINCT ON (customer) customer, id FROM orders ORDER BY customer NULLS LAST, id
SELECT id FROM orders LIMIT 0
SELECT 1 AS a, 'x' AS b, NULL AS c, true AS d
VALUES (1, 'a'), (2, 'b')
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(n, t) ORDER BY n
"""

_AGGREGATES = """
SELECT count(*), count(customer), count(DISTINCT customer) FROM orders
SELECT count(*), sum(count), min(count), max(count) FROM orders
SELECT sum(id), avg(id), min(id), max(id) FROM orders
SELECT sum(amount), avg(amount), min(amount), max(amount) FROM orders WHERE abs(amount) < 100
SELECT avg(count) FROM orders
SELECT min(customer), max(customer), min(day), max(day), min("at"), max("at") FROM orders
SELECT bool_and(paid), bool_or(paid) FROM orders
SELECT count(*), sum(count), avg(amount), min(day) FROM orders WHERE false
SELECT customer, count(*) FROM orders GROUP BY customer ORDER BY customer NULLS LAST
SELECT paid, sum(count), max(amount) FROM orders GROUP BY paid ORDER BY paid NULLS LAST
SELECT paid, customer, count(*) FROM orders GROUP BY 1, 2 ORDER BY 1 NULLS LAST, 2 NULLS LAST
SELECT day, count(*) FILTER (WHERE paid) FROM orders GROUP BY day ORDER BY day NULLS FIRST
SELECT place, sum(pieces), count(DISTINCT note) FROM stock GROUP BY place ORDER BY place
SELECT note, min(item), max(item) FROM stock GROUP BY note HAVING count(*) > 5 ORDER BY note
SELECT place, avg(pieces) FROM stock GROUP BY place HAVING sum(pieces) > 10 ORDER BY place
SELECT count(*) FROM (SELECT 1 FROM orders GROUP BY paid, day) x
SELECT var_samp(pieces), var_pop(pieces), stddev_samp(pieces), stddev_pop(pieces) FROM stock
SELECT corr(pieces, item), covar_pop(pieces, item), covar_samp(pieces, item) FROM stock
SELECT regr_slope(pieces, item), regr_intercept(pieces, item), regr_r2(pieces, item) FROM stock
SELECT string_agg(note, ',' ORDER BY item, note) FROM stock WHERE place = 'a'
SELECT place, array_agg(item ORDER BY item DESC) FROM stock GROUP BY place ORDER BY place
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY item) FROM stock
SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY item) FROM stock
SELECT place, note, sum(pieces) FROM stock GROUP BY ROLLUP (place, note) ORDER BY 1 NULLS LAST, 2 NULLS LAST
SELECT place, note, sum(pieces) FROM stock GROUP BY CUBE (place, note) ORDER BY 1 NULLS LAST, 2 NULLS LAST, 3
SELECT place, note, count(*) FROM stock GROUP BY GROUPING SETS ((place), (note), ()) ORDER BY 1 NULLS LAST, 2 NULLS LAST
SELECT place, grouping(place), count(*) FROM stock GROUP BY ROLLUP (place) ORDER BY 1 NULLS LAST
SELECT bit_and(pieces), bit_or(pieces), bit_xor(pieces) FROM stock
SELECT count(*) FROM orders WHERE customer = (SELECT max(customer) FROM orders)
SELECT max(c) FROM (SELECT count(*) AS c FROM orders GROUP BY customer) t
SELECT mode() WITHIN GROUP (ORDER BY place) FROM stock WHERE place = 'b'
"""

_JOINS = """
SELECT o.id, s.place FROM orders o JOIN stock s ON o.count = s.item ORDER BY 1, 2
SELECT o.id, s.place FROM orders o LEFT JOIN stock s ON o.count = s.item AND s.pieces = 1 ORDER BY 1, 2 NULLS LAST
SELECT o.id, s.item FROM orders o RIGHT JOIN stock s ON o.count = s.item AND o.paid ORDER BY 1 NULLS LAST, 2, s.place
SELECT count(*) FROM orders o FULL JOIN stock s ON o.count = s.item
SELECT count(*) FROM orders CROSS JOIN stock
SELECT count(*) FROM orders, stock WHERE orders.count < stock.item
SELECT a.id, b.id FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id ORDER BY 1, 2
SELECT count(*) FROM orders a JOIN orders b USING (customer)
SELECT count(*) FROM orders a JOIN orders b ON a.customer IS NOT DISTINCT FROM b.customer
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM stock s WHERE s.item = o.count) ORDER BY id
SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM stock s WHERE s.item = o.count) ORDER BY id
SELECT id FROM orders WHERE count IN (SELECT item FROM stock) ORDER BY id
SELECT id FROM orders WHERE count NOT IN (SELECT item FROM stock) ORDER BY id
SELECT id, (SELECT count(*) FROM stock s WHERE s.item = o.count) AS n FROM orders o ORDER BY id
SELECT id, (SELECT max(pieces) FROM stock s WHERE s.item < o.count) AS n FROM orders o ORDER BY id
SELECT id FROM orders WHERE count > ALL (SELECT item FROM stock) ORDER BY id
SELECT id FROM orders WHERE count = ANY (SELECT item FROM stock) ORDER BY id
SELECT s.place, t.n FROM (SELECT DISTINCT place FROM stock) s, LATERAL (SELECT count(*) AS n FROM stock x WHERE x.place = s.place) t ORDER BY 1
SELECT a.place, b.place FROM (SELECT DISTINCT place FROM stock) a, (SELECT DISTINCT place FROM stock) b WHERE a.place < b.place ORDER BY 1, 2
SELECT item FROM stock WHERE place = 'a' UNION SELECT item FROM stock WHERE place = 'b' ORDER BY 1
SELECT pieces FROM stock UNION ALL SELECT count FROM orders ORDER BY 1 NULLS LAST
SELECT item FROM stock INTERSECT SELECT count FROM orders ORDER BY 1
SELECT item FROM stock EXCEPT SELECT count FROM orders ORDER BY 1
SELECT pieces FROM stock INTERSECT ALL SELECT count FROM orders ORDER BY 1
SELECT pieces FROM stock EXCEPT ALL SELECT 1 ORDER BY 1
(SELECT id FROM orders ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM orders ORDER BY id DESC LIMIT 2) ORDER BY 1
SELECT o.customer, sum(s.pieces) FROM orders o JOIN stock s ON o.count = s.item GROUP BY 1 ORDER BY 1 NULLS LAST
"""

_CTES = """
WITH a AS (SELECT count(*) AS n FROM orders) SELECT n + 1 FROM a
WITH a AS (SELECT id FROM orders WHERE paid), b AS (SELECT id FROM a WHERE id > 0) SELECT count(*) FROM b
WITH a(x, y) AS (SELECT place, sum(pieces) FROM stock GROUP BY place) SELECT x, y FROM a ORDER BY x
WITH a AS MATERIALIZED (SELECT max(id) AS m FROM orders) SELECT m FROM a
WITH orders AS (SELECT 1 AS one) SELECT * FROM orders
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT sum(n), count(*) FROM r
WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n % 3 + 1 FROM r) SELECT n FROM r ORDER BY n
WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f WHERE b < 100) SELECT a FROM f ORDER BY a, b
SELECT n FROM (WITH a AS (SELECT 3 AS n) SELECT n FROM a) x
SELECT g, g * g FROM generate_series(1, 5) t(g) ORDER BY g
SELECT count(*) FROM generate_series(1, 100) t(g) LEFT JOIN orders ON g = id WHERE id IS NULL
"""

_WINDOWS = """
SELECT id, row_number() OVER (ORDER BY id) FROM orders ORDER BY id
SELECT id, rank() OVER (ORDER BY amount NULLS LAST), dense_rank() OVER (ORDER BY amount NULLS LAST) FROM orders ORDER BY id
SELECT id, percent_rank() OVER (ORDER BY count NULLS FIRST), cume_dist() OVER (ORDER BY count NULLS FIRST) FROM orders ORDER BY id
SELECT id, ntile(4) OVER (ORDER BY id) FROM orders ORDER BY id
SELECT id, lag(id) OVER (ORDER BY id), lead(id, 2) OVER (ORDER BY id) FROM orders ORDER BY id
SELECT id, lag(count, 1, 0) OVER (PARTITION BY customer ORDER BY id) FROM orders ORDER BY id
SELECT id, first_value(id) OVER (PARTITION BY paid ORDER BY id), last_value(id) OVER (PARTITION BY paid ORDER BY id) FROM orders ORDER BY id
SELECT id, nth_value(id, 3) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM orders ORDER BY id
SELECT place, item, sum(pieces) OVER (PARTITION BY place ORDER BY item) FROM stock ORDER BY 1, 2
SELECT place, item, sum(pieces) OVER (PARTITION BY place ORDER BY item ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM stock ORDER BY 1, 2
SELECT place, item, count(*) OVER (ORDER BY pieces RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM stock ORDER BY 1, 2
SELECT place, item, count(*) OVER (ORDER BY pieces GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM stock ORDER BY 1, 2
SELECT place, item, sum(pieces) OVER (ORDER BY item ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM stock WHERE place = 'a' ORDER BY 1, 2
SELECT place, item, max(pieces) OVER w, min(pieces) OVER w FROM stock WINDOW w AS (PARTITION BY place) ORDER BY 1, 2
SELECT place, item, avg(pieces) OVER (PARTITION BY note) FROM stock ORDER BY 1, 2
SELECT place, sum(pieces), rank() OVER (ORDER BY sum(pieces) DESC, place) FROM stock GROUP BY place ORDER BY 1
SELECT * FROM (SELECT place, item, row_number() OVER (PARTITION BY place ORDER BY pieces DESC, item) AS r FROM stock) t WHERE r <= 2 ORDER BY 1, 3
SELECT id, count(*) FILTER (WHERE paid) OVER (ORDER BY id) FROM orders ORDER BY id
SELECT id, sum(count) OVER () FROM orders ORDER BY id
"""

_EXPRESSIONS = """
SELECT id, coalesce(customer, 'none'), nullif(customer, 'ada') FROM orders ORDER BY id
SELECT id, CASE WHEN amount < 0 THEN 'low' WHEN amount > 1 THEN 'high' ELSE 'none' END FROM orders ORDER BY id
SELECT id, CASE customer WHEN 'ada' THEN 1 WHEN 'bob' THEN 2 END FROM orders ORDER BY id
SELECT id, greatest(count, 0), least(count, 0) FROM orders WHERE count IS NOT NULL ORDER BY id
SELECT id, abs(count::bigint), sign(amount), ceil(amount), floor(amount) FROM orders ORDER BY id
SELECT id, round(amount::numeric, 1) FROM orders WHERE abs(amount) < 100 ORDER BY id
SELECT id, sqrt(abs(amount)), ln(abs(amount) + 1), exp(1.0::float8), power(2::float8, 10) FROM orders ORDER BY id
SELECT id, count::bigint * 2, count::bigint + id, count - 1::bigint FROM orders ORDER BY id
SELECT 7 % 3, -7 % 3, 7 % -3, mod(-7, 3)
SELECT 1.5::numeric(10, 2) + 2.25::numeric(10, 2), 1.10::numeric(5, 2) * 3
SELECT 0.1::numeric(3, 1) + 0.2::numeric(3, 1) = 0.3::numeric(3, 1)
SELECT 0.1::float8 + 0.2::float8 = 0.3::float8
SELECT cast('12' AS int), cast('1.5' AS float8), cast(1.5 AS text), cast(true AS text)
SELECT cast('2026-01-31' AS date), cast('2026-01-31 10:00:00+02' AS timestamptz)
SELECT cast(2.5 AS numeric(3, 0)), cast(3.5 AS numeric(3, 0)), cast(-2.5 AS numeric(3, 0))
SELECT id, length(customer), bit_length(customer) FROM orders ORDER BY id
SELECT id, upper(customer), lower(customer), reverse(customer) FROM orders WHERE customer <> 'é' ORDER BY id
SELECT id, customer || '-' || id FROM orders ORDER BY id
SELECT id, concat(customer, '-', id), concat_ws('/', customer, 'x') FROM orders ORDER BY id
SELECT id, substr(customer, 2), substring(customer, 1, 2), left(customer, 1), right(customer, 1) FROM orders ORDER BY id
SELECT id, left(customer, -1), right(customer, -1) FROM orders ORDER BY id
SELECT id, lpad(customer, 5, '*'), rpad(customer, 5, '*') FROM orders ORDER BY id
SELECT id, trim('  x  ') || '|', ltrim('xxy', 'x'), rtrim('yxx', 'x') FROM orders ORDER BY id LIMIT 1
SELECT id, replace(customer, 'a', 'A'), strpos(customer, 'b'), position('o' IN customer) FROM orders ORDER BY id
SELECT id, translate(customer, 'ab', 'xy'), repeat(customer, 2), starts_with(customer, 'b') FROM orders ORDER BY id
SELECT id FROM orders WHERE customer LIKE 'b%' ORDER BY id
SELECT id FROM orders WHERE customer LIKE '_o_' ORDER BY id
SELECT id FROM orders WHERE customer ILIKE 'B%' ORDER BY id
SELECT id FROM orders WHERE customer NOT LIKE '%a%' ORDER BY id
SELECT id FROM orders WHERE customer LIKE 'z\\%%' ESCAPE '\\' ORDER BY id
SELECT id FROM orders WHERE customer SIMILAR TO '(ada|bob)' ORDER BY id
SELECT split_part('a,b,c', ',', 2), split_part('a,b,c', ',', 9)
SELECT ascii('a'), chr(233), md5('x')
SELECT regexp_replace('a1b2', '[0-9]', 'x'), regexp_replace('a1b2', '[0-9]', 'x', 'g')
SELECT lower(to_hex(255)), 5 & 3, 5 | 3, 1 << 4, 256 >> 2
SELECT 'a' < 'B', 'a' < 'b', 'B' < 'a' COLLATE "C", '' < 'a'
SELECT NULL = NULL, NULL IS NULL, NULL IS DISTINCT FROM NULL, 1 = NULL
SELECT NULL AND false, NULL AND true, NULL OR true, NULL OR false, NOT NULL
SELECT (1, 2) = (1, 2), (1, 2) < (1, 3), (1, NULL) IS NULL
SELECT 'NaN'::float8 = 'NaN'::float8, 'NaN'::float8 > 1e300, 'Infinity'::float8 > 1
SELECT pi(), sin(0.5::float8), cos(0.5::float8), tan(0.5::float8), atan2(1::float8, 2::float8)
SELECT degrees(1::float8), radians(180::float8), cbrt(27::float8), log(100::float8)
SELECT gcd(12, 18), lcm(4, 6), factorial(5)
SELECT id FROM orders WHERE (id, count) IN (SELECT item, item FROM stock) ORDER BY id
"""

_TIMES = """
SELECT id, extract(year FROM day), extract(month FROM day), extract(day FROM day) FROM orders ORDER BY id
SELECT id, extract(dow FROM day), extract(isodow FROM day), extract(doy FROM day) FROM orders ORDER BY id
SELECT id, extract(week FROM day), extract(isoyear FROM day), extract(quarter FROM day) FROM orders ORDER BY id
SELECT id, extract(hour FROM "at"), extract(minute FROM "at"), extract(epoch FROM "at") FROM orders ORDER BY id
SELECT id, extract(decade FROM day), extract(century FROM day), extract(millennium FROM day) FROM orders ORDER BY id
SELECT id, date_part('hour', "at"), date_part('epoch', "at") FROM orders ORDER BY id
SELECT id, date_trunc('hour', "at"), date_trunc('day', "at"), date_trunc('week', "at") FROM orders ORDER BY id
SELECT id, date_trunc('month', "at"), date_trunc('quarter', "at"), date_trunc('year', "at") FROM orders ORDER BY id
SELECT id, "at" + INTERVAL '1 day', "at" - INTERVAL '90 minutes', "at" + INTERVAL '1 month' FROM orders ORDER BY id
SELECT id, (day + INTERVAL '1 month')::date, (day - INTERVAL '1 year')::date FROM orders ORDER BY id
SELECT id, day + 1, day - 1, day - DATE '2020-01-01' FROM orders ORDER BY id
SELECT id, "at"::date, "at"::date = day FROM orders ORDER BY id
SELECT id, "at" AT TIME ZONE 'UTC' FROM orders ORDER BY id
SELECT id, "at" AT TIME ZONE 'Europe/Berlin' FROM orders ORDER BY id
SELECT id, "at" AT TIME ZONE 'America/New_York', "at" AT TIME ZONE 'Asia/Kathmandu' FROM orders ORDER BY id
SELECT id, (("at" AT TIME ZONE 'Europe/Berlin')::date) FROM orders ORDER BY id
SELECT id, date_trunc('hour', "at" AT TIME ZONE 'Europe/Berlin') FROM orders ORDER BY id
SELECT date_trunc('day', "at") AS d, count(*) FROM orders GROUP BY 1 ORDER BY 1 NULLS LAST
SELECT "at" AT TIME ZONE 'Europe/Berlin' AS local, count(*) FROM orders GROUP BY 1 ORDER BY 1 NULLS LAST
SELECT TIMESTAMP '2026-10-25 02:30:00' AT TIME ZONE 'America/New_York'
SELECT TIMESTAMPTZ '2026-03-29 00:30:00+00' AT TIME ZONE 'Europe/Berlin', TIMESTAMPTZ '2026-03-29 01:30:00+00' AT TIME ZONE 'Europe/Berlin'
SELECT make_date(2024, 2, 29), DATE '2024-03-01' - 1, (DATE '2024-01-31' + INTERVAL '1 month')::date
SELECT extract(epoch FROM TIMESTAMPTZ '2026-01-02 00:00:00+00' - TIMESTAMPTZ '2026-01-01 00:00:00+00')
SELECT to_timestamp(0), to_timestamp(1.5)
SELECT DATE '2026-01-01' < DATE '2026-01-02', TIMESTAMPTZ '2026-01-01 00:00:00+01' = TIMESTAMPTZ '2025-12-31 23:00:00+00'
SELECT max("at") - min("at") > INTERVAL '1 day' FROM orders
SELECT min("at" + INTERVAL '1 second') FROM orders WHERE "at" > '2026-01-01 00:00:00+00'
"""

CORPUS = [
    line.strip()
    for group in (_PLAIN, _AGGREGATES, _JOINS, _CTES, _WINDOWS, _EXPRESSIONS, _TIMES)
    for line in group.splitlines()
    if line.strip()
]
