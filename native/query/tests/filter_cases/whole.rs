//! $expr, $jsonSchema, $text and geometry.

use super::Row;

pub(crate) const SCHEMA: &[Row] = &[
    (r#"{"$jsonSchema":{}}"#, &[r#"{}"#, r#"{"a":1}"#], &[]),
    (
        r#"{"$jsonSchema":{"required":["a","b"]}}"#,
        &[r#"{"a":null,"b":1}"#],
        &[r#"{"a":1}"#, r#"{}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"bsonType":"int"}}}}"#,
        &[r#"{"a":1}"#, r#"{}"#],
        &[r#"{"a":1.0}"#, r#"{"a":"x"}"#, r#"{"a":[1]}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"bsonType":["int","string"]}}}}"#,
        &[r#"{"a":1}"#, r#"{"a":"x"}"#],
        &[r#"{"a":null}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"type":"number"}}}}"#,
        &[r#"{"a":1.5}"#, r#"{"a":{"$numberDecimal":"1"}}"#],
        &[r#"{"a":"1"}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"type":"object"}}}}"#,
        &[r#"{"a":{}}"#],
        &[r#"{"a":[]}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"minimum":1,"maximum":5}}}}"#,
        &[r#"{"a":1}"#, r#"{"a":5.0}"#, r#"{"a":"x"}"#],
        &[
            r#"{"a":0.9}"#,
            r#"{"a":6}"#,
            r#"{"a":{"$numberDouble":"NaN"}}"#,
        ],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}}"#,
        &[r#"{"a":1.1}"#],
        &[r#"{"a":1}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"multipleOf":0.1}}}}"#,
        &[
            r#"{"a":0.3}"#,
            r#"{"a":{"$numberDecimal":"0.7"}}"#,
            r#"{"a":2}"#,
        ],
        &[r#"{"a":0.35}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"multipleOf":3}}}}"#,
        &[r#"{"a":9}"#, r#"{"a":0}"#, r#"{"a":-3}"#],
        &[r#"{"a":10}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"minLength":2,"maxLength":3}}}}"#,
        &[r#"{"a":"äö"}"#, r#"{"a":5}"#],
        &[r#"{"a":"ä"}"#, r#"{"a":"abcd"}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"pattern":"^x"}}}}"#,
        &[r#"{"a":"xy"}"#, r#"{"a":1}"#],
        &[r#"{"a":"yx"}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"enum":[1,"x",{"p":1,"q":2},null]}}}}"#,
        &[
            r#"{"a":1.0}"#,
            r#"{"a":{"q":2,"p":1}}"#,
            r#"{"a":null}"#,
            r#"{}"#,
        ],
        &[r#"{"a":2}"#, r#"{"a":{"p":1}}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"items":{"bsonType":"int"}}}}}"#,
        &[r#"{"a":[1,2]}"#, r#"{"a":[]}"#, r#"{"a":"x"}"#],
        &[r#"{"a":[1,"x"]}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"items":[{"bsonType":"int"},{"bsonType":"string"}],"additionalItems":false}}}}"#,
        &[r#"{"a":[1]}"#, r#"{"a":[1,"x"]}"#],
        &[r#"{"a":["x"]}"#, r#"{"a":[1,"x",2]}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"items":[{}],"additionalItems":{"bsonType":"int"}}}}}"#,
        &[r#"{"a":["x",1]}"#],
        &[r#"{"a":["x","y"]}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"minItems":1,"maxItems":2,"uniqueItems":true}}}}"#,
        &[r#"{"a":[1,2]}"#],
        &[
            r#"{"a":[]}"#,
            r#"{"a":[1,1.0]}"#,
            r#"{"a":[1,2,3]}"#,
            r#"{"a":[{"x":1,"y":2},{"y":2,"x":1}]}"#,
        ],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{}},"additionalProperties":false}}"#,
        &[r#"{"a":1}"#, r#"{}"#],
        &[r#"{"a":1,"b":2}"#, r#"{"_id":1}"#],
    ),
    (
        r#"{"$jsonSchema":{"additionalProperties":{"bsonType":"int"},"patternProperties":{"^s":{"bsonType":"string"}}}}"#,
        &[r#"{"s1":"x","n":1}"#],
        &[r#"{"s1":1}"#, r#"{"n":"x"}"#],
    ),
    (
        r#"{"$jsonSchema":{"minProperties":1,"maxProperties":2}}"#,
        &[r#"{"a":1}"#],
        &[r#"{}"#, r#"{"a":1,"b":1,"c":1}"#],
    ),
    (
        r#"{"$jsonSchema":{"dependencies":{"a":["b"],"c":{"required":["d"]}}}}"#,
        &[r#"{}"#, r#"{"a":1,"b":1}"#, r#"{"c":1,"d":1}"#],
        &[r#"{"a":1}"#, r#"{"c":1}"#],
    ),
    (
        r#"{"$jsonSchema":{"anyOf":[{"required":["a"]},{"required":["b"]}]}}"#,
        &[r#"{"a":1}"#, r#"{"b":1}"#],
        &[r#"{}"#],
    ),
    (
        r#"{"$jsonSchema":{"oneOf":[{"required":["a"]},{"required":["b"]}]}}"#,
        &[r#"{"a":1}"#],
        &[r#"{}"#, r#"{"a":1,"b":1}"#],
    ),
    (
        r#"{"$jsonSchema":{"allOf":[{"required":["a"]},{"required":["b"]}]}}"#,
        &[r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#],
    ),
    (
        r#"{"$jsonSchema":{"not":{"required":["a"]}}}"#,
        &[r#"{}"#],
        &[r#"{"a":1}"#],
    ),
    (
        r#"{"$jsonSchema":{"properties":{"a":{"properties":{"b":{"bsonType":"int"}},"required":["b"]}}}}"#,
        &[r#"{"a":{"b":1}}"#, r#"{"a":5}"#],
        &[r#"{"a":{}}"#, r#"{"a":{"b":"x"}}"#],
    ),
    (
        r#"{"$or":[{"$jsonSchema":{"required":["a"]}},{"b":1}]}"#,
        &[r#"{"b":1}"#, r#"{"a":0}"#],
        &[r#"{"b":2}"#],
    ),
];

pub(crate) const TEXT: &[Row] = &[
    (
        r#"{"$text":{"$search":"coffee"}}"#,
        &[
            r#"{"a":"Coffee shop"}"#,
            r#"{"a":{"b":["x","some coffees"]}}"#,
            r#"{"a":"cafe, COFFEE!"}"#,
        ],
        &[r#"{"a":"tea"}"#, r#"{"coffee":1}"#, r#"{}"#],
    ),
    (
        r#"{"$text":{"$search":"running"}}"#,
        &[r#"{"a":"he runs"}"#, r#"{"a":"run"}"#],
        &[r#"{"a":"ran"}"#],
    ),
    (
        r#"{"$text":{"$search":"running","$language":"none"}}"#,
        &[r#"{"a":"Running late"}"#],
        &[r#"{"a":"he runs"}"#],
    ),
    (
        r#"{"$text":{"$search":"coffee tea"}}"#,
        &[r#"{"a":"coffee"}"#, r#"{"b":"tea"}"#],
        &[r#"{"a":"milk"}"#],
    ),
    (
        r#"{"$text":{"$search":"coffee -cake"}}"#,
        &[r#"{"a":"coffee shop"}"#],
        &[
            r#"{"a":"coffee cake"}"#,
            r#"{"a":"coffee","b":"cakes"}"#,
            r#"{"a":"tea"}"#,
        ],
    ),
    (
        r#"{"$text":{"$search":"\"coffee shop\""}}"#,
        &[r#"{"a":"a Coffee Shop here"}"#],
        &[r#"{"a":"shop coffee"}"#, r#"{"a":"coffee","b":"shop"}"#],
    ),
    (
        r#"{"$text":{"$search":"\"coffee shop\" tea"}}"#,
        &[r#"{"a":"coffee shop"}"#],
        &[r#"{"a":"tea"}"#],
    ),
    (
        r#"{"$text":{"$search":"coffee -\"ice cream\""}}"#,
        &[r#"{"a":"coffee cream"}"#],
        &[r#"{"a":"coffee ice cream"}"#],
    ),
    (
        r#"{"$text":{"$search":"pre-owned"}}"#,
        &[r#"{"a":"owned"}"#, r#"{"a":"pre"}"#],
        &[r#"{"a":"new"}"#],
    ),
    (
        r#"{"$text":{"$search":"-coffee"}}"#,
        &[],
        &[r#"{"a":"tea"}"#, r#"{"a":"coffee"}"#],
    ),
    (
        r#"{"$text":{"$search":"the"}}"#,
        &[],
        &[r#"{"a":"the end"}"#],
    ),
    (
        r#"{"$text":{"$search":"the","$language":"none"}}"#,
        &[r#"{"a":"the end"}"#],
        &[],
    ),
    (r#"{"$text":{"$search":""}}"#, &[], &[r#"{"a":"x"}"#]),
    (
        r#"{"$text":{"$search":"cafe"}}"#,
        &[r#"{"a":"Café"}"#, r#"{"a":"CAFÉS"}"#],
        &[],
    ),
    (
        r#"{"$text":{"$search":"cafe","$diacriticSensitive":true}}"#,
        &[r#"{"a":"cafe"}"#],
        &[r#"{"a":"Café"}"#],
    ),
    (
        r#"{"$text":{"$search":"Coffee","$caseSensitive":true}}"#,
        &[r#"{"a":"Coffee"}"#],
        &[r#"{"a":"coffee"}"#],
    ),
    (
        r#"{"$text":{"$search":"coffee"},"b":1}"#,
        &[r#"{"a":"coffee","b":1}"#],
        &[r#"{"a":"coffee"}"#],
    ),
];

pub(crate) const GEO: &[Row] = &[
    // A square around the origin, whichever way it is wound.
    (
        r#"{"p":{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[-1,-1],[1,-1],[1,1],[-1,1],[-1,-1]]]}}}}"#,
        &[
            r#"{"p":{"type":"Point","coordinates":[0,0]}}"#,
            r#"{"p":[0.5,0.5]}"#,
            r#"{"p":{"lng":0,"lat":0}}"#,
            r#"{"p":[[50,50],[0,0]]}"#,
            r#"{"p":{"type":"Point","coordinates":[1,0]}}"#,
            r#"{"p":{"type":"LineString","coordinates":[[0,0],[0.5,0.5]]}}"#,
        ],
        &[
            r#"{"p":{"type":"Point","coordinates":[2,0]}}"#,
            r#"{"p":[180,0]}"#,
            r#"{"p":"0,0"}"#,
            r#"{}"#,
            r#"{"p":{"type":"LineString","coordinates":[[0,0],[2,0]]}}"#,
            r#"{"p":{"type":"Point","coordinates":[200,0]}}"#,
        ],
    ),
    (
        r#"{"p":{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[-1,-1],[-1,1],[1,1],[1,-1],[-1,-1]]]}}}}"#,
        &[r#"{"p":[0,0]}"#],
        &[r#"{"p":[2,0]}"#, r#"{"p":[180,0]}"#],
    ),
    // A hole.
    (
        r#"{"p":{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[-2,-2],[2,-2],[2,2],[-2,2],[-2,-2]],[[-1,-1],[1,-1],[1,1],[-1,1],[-1,-1]]]}}}}"#,
        &[r#"{"p":[1.5,0]}"#],
        &[r#"{"p":[0,0]}"#, r#"{"p":[3,0]}"#],
    ),
    // Across the date line and over a pole.
    (
        r#"{"p":{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]}}}}"#,
        &[r#"{"p":[180,0]}"#, r#"{"p":[-175,5]}"#],
        &[r#"{"p":[0,0]}"#, r#"{"p":[160,0]}"#],
    ),
    (
        r#"{"p":{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[0,80],[90,80],[180,80],[-90,80],[0,80]]]}}}}"#,
        &[r#"{"p":[45,89]}"#, r#"{"p":[0,90]}"#],
        &[r#"{"p":[45,70]}"#, r#"{"p":[0,-90]}"#],
    ),
    // Edges are great arcs: at the middle of this one the latitude is above 10.
    (
        r#"{"p":{"$geoWithin":{"$geometry":{"type":"Polygon","coordinates":[[[-40,-10],[40,-10],[40,10],[-40,10],[-40,-10]]]}}}}"#,
        &[r#"{"p":[0,11]}"#],
        &[r#"{"p":[0,14]}"#],
    ),
    (
        r#"{"p":{"$geoWithin":{"$centerSphere":[[0,0],0.1]}}}"#,
        &[
            r#"{"p":[5,0]}"#,
            r#"{"p":{"type":"Point","coordinates":[0,-5]}}"#,
        ],
        &[r#"{"p":[6,0]}"#],
    ),
    (
        r#"{"p":{"$geoWithin":{"$center":[[0,0],5]}}}"#,
        &[
            r#"{"p":[3,4]}"#,
            r#"{"p":{"type":"Point","coordinates":[3,4]}}"#,
            r#"{"p":{"x":0,"y":5}}"#,
        ],
        &[
            r#"{"p":[4,4]}"#,
            r#"{"p":{"type":"LineString","coordinates":[[0,0],[1,1]]}}"#,
        ],
    ),
    (
        r#"{"p":{"$geoWithin":{"$box":[[0,0],[100,200]]}}}"#,
        &[r#"{"p":[50,150]}"#, r#"{"p":[0,0]}"#],
        &[r#"{"p":[-1,0]}"#],
    ),
    (
        r#"{"p":{"$geoWithin":{"$polygon":[[0,0],[4,0],[4,4],[2,2],[0,4]]}}}"#,
        &[r#"{"p":[1,1]}"#, r#"{"p":[2,2]}"#, r#"{"p":[4,0]}"#],
        &[r#"{"p":[2,3]}"#, r#"{"p":[5,0]}"#],
    ),
    (
        r#"{"p":{"$geoIntersects":{"$geometry":{"type":"LineString","coordinates":[[-5,0],[5,0]]}}}}"#,
        &[
            r#"{"p":{"type":"LineString","coordinates":[[0,-5],[0,5]]}}"#,
            r#"{"p":{"type":"Point","coordinates":[2,0]}}"#,
            r#"{"p":{"type":"Polygon","coordinates":[[[-1,-1],[1,-1],[1,1],[-1,1],[-1,-1]]]}}"#,
            r#"{"p":{"type":"MultiPoint","coordinates":[[9,9],[1,0]]}}"#,
            r#"{"p":{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[0,0]}]}}"#,
        ],
        &[
            r#"{"p":{"type":"LineString","coordinates":[[0,1],[0,5]]}}"#,
            r#"{"p":{"type":"Point","coordinates":[2,1]}}"#,
            r#"{"p":"x"}"#,
        ],
    ),
    (
        r#"{"p":{"$geoIntersects":{"$geometry":{"type":"Polygon","coordinates":[[[-1,-1],[1,-1],[1,1],[-1,1],[-1,-1]]]}}}}"#,
        &[
            r#"{"p":{"type":"Polygon","coordinates":[[[-9,-9],[9,-9],[9,9],[-9,9],[-9,-9]]]}}"#,
            r#"{"p":{"type":"Polygon","coordinates":[[[0,0],[9,0],[9,9],[0,9],[0,0]]]}}"#,
            r#"{"p":[0,0]}"#,
        ],
        &[r#"{"p":{"type":"Polygon","coordinates":[[[5,5],[9,5],[9,9],[5,9],[5,5]]]}}"#],
    ),
    // Around the point opposite to a corner, a polygon turns by any angle.
    (
        r#"{"p":{"$geoIntersects":{"$geometry":{"type":"Polygon","coordinates":[[[-0.0001,89.9999],[0.0001,89.9999],[0.0001,90],[-0.0001,90],[-0.0001,89.9999]]]}}}}"#,
        &[r#"{"p":[0,90]}"#, r#"{"p":[0,89.99995]}"#],
        &[r#"{"p":[0,-90]}"#, r#"{"p":[180,-89.9999]}"#],
    ),
    (
        r#"{"p":{"$not":{"$geoWithin":{"$center":[[0,0],5]}}}}"#,
        &[r#"{"p":[9,9]}"#, r#"{}"#],
        &[r#"{"p":[0,0]}"#],
    ),
    // One degree of longitude at the equator is about 111.3 km.
    (
        r#"{"p":{"$near":{"$geometry":{"type":"Point","coordinates":[0,0]},"$maxDistance":111400,"$minDistance":100}}}"#,
        &[
            r#"{"p":{"type":"Point","coordinates":[1,0]}}"#,
            r#"{"p":[0,1]}"#,
        ],
        &[r#"{"p":[0,0]}"#, r#"{"p":[1.01,0]}"#, r#"{}"#],
    ),
    (
        r#"{"p":{"$near":[0,0],"$maxDistance":5}}"#,
        &[r#"{"p":[3,4]}"#, r#"{"p":[[9,9],[1,1]]}"#],
        &[r#"{"p":[4,4]}"#],
    ),
    (
        r#"{"p":{"$nearSphere":[0,0],"$maxDistance":0.1}}"#,
        &[r#"{"p":[5,0]}"#],
        &[r#"{"p":[6,0]}"#],
    ),
    (
        r#"{"p":{"$nearSphere":{"$geometry":{"type":"Point","coordinates":[179.9,0]},"$maxDistance":50000}}}"#,
        &[r#"{"p":[-179.9,0]}"#],
        &[r#"{"p":[0,0]}"#],
    ),
    (
        r#"{"$and":[{"p":{"$near":[0,0]}},{"b":1}]}"#,
        &[r#"{"p":[3,4],"b":1}"#],
        &[r#"{"b":1}"#],
    ),
];
