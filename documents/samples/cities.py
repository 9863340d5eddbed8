"""Large cities of the world; population of the city or its urban area, rounded, in thousands."""

from __future__ import annotations

from documents.samples.sample import SampleCollection
from foundation.json_types import JsonObject

#: Name, country (ISO 3166), longitude, latitude, thousands of people.
_CITIES = """
Tokyo JP 139.69 35.69 13960
Osaka JP 135.50 34.69 2750
Yokohama JP 139.64 35.44 3770
Nagoya JP 136.91 35.18 2330
Sapporo JP 141.35 43.06 1970
Seoul KR 126.98 37.57 9410
Busan KR 129.08 35.18 3350
Beijing CN 116.41 39.90 21890
Shanghai CN 121.47 31.23 24870
Guangzhou CN 113.26 23.13 18680
Shenzhen CN 114.06 22.54 17560
Chengdu CN 104.07 30.57 20940
Chongqing CN 106.55 29.56 32050
Wuhan CN 114.31 30.59 12330
Hong_Kong HK 114.17 22.32 7480
Taipei TW 121.57 25.03 2600
Manila PH 120.98 14.60 1850
Quezon_City PH 121.04 14.68 2960
Jakarta ID 106.85 -6.21 10560
Surabaya ID 112.75 -7.26 2870
Singapore SG 103.82 1.35 5690
Kuala_Lumpur MY 101.69 3.14 1980
Bangkok TH 100.50 13.76 8280
Hanoi VN 105.85 21.03 8050
Ho_Chi_Minh_City VN 106.66 10.82 8990
Yangon MM 96.16 16.84 5160
Dhaka BD 90.41 23.81 10280
Kolkata IN 88.36 22.57 4500
Delhi IN 77.21 28.61 16790
Mumbai IN 72.88 19.08 12440
Bengaluru IN 77.59 12.97 8440
Chennai IN 80.27 13.08 6750
Hyderabad IN 78.49 17.39 6990
Ahmedabad IN 72.57 23.02 5570
Pune IN 73.86 18.52 3120
Karachi PK 67.00 24.86 14910
Lahore PK 74.36 31.52 11130
Colombo LK 79.86 6.93 750
Kathmandu NP 85.32 27.72 850
Kabul AF 69.17 34.53 4430
Tashkent UZ 69.24 41.30 2570
Almaty KZ 76.95 43.24 2000
Tehran IR 51.39 35.69 8690
Baghdad IQ 44.37 33.31 7510
Riyadh SA 46.68 24.71 7010
Jeddah SA 39.17 21.49 3750
Dubai AE 55.27 25.20 3330
Doha QA 51.53 25.29 1190
Amman JO 35.93 31.95 4010
Beirut LB 35.50 33.89 2200
Jerusalem IL 35.21 31.77 940
Istanbul TR 28.98 41.01 15460
Ankara TR 32.86 39.93 5660
Izmir TR 27.14 38.42 4370
Tbilisi GE 44.83 41.72 1180
Yerevan AM 44.51 40.18 1080
Baku AZ 49.87 40.41 2290
Moscow RU 37.62 55.76 12640
Saint_Petersburg RU 30.34 59.93 5380
Novosibirsk RU 82.92 55.03 1620
Yekaterinburg RU 60.61 56.84 1490
Kyiv UA 30.52 50.45 2950
Kharkiv UA 36.23 49.99 1430
Minsk BY 27.56 53.90 2020
Warsaw PL 21.01 52.23 1790
Krakow PL 19.94 50.06 780
Prague CZ 14.44 50.08 1310
Budapest HU 19.04 47.50 1750
Bucharest RO 26.10 44.43 1830
Sofia BG 23.32 42.70 1240
Belgrade RS 20.46 44.79 1370
Zagreb HR 15.98 45.81 800
Athens GR 23.73 37.98 660
Vienna AT 16.37 48.21 1920
Berlin DE 13.40 52.52 3660
Hamburg DE 9.99 53.55 1850
Munich DE 11.58 48.14 1490
Cologne DE 6.96 50.94 1080
Frankfurt DE 8.68 50.11 760
Zurich CH 8.54 47.37 420
Geneva CH 6.14 46.20 200
Milan IT 9.19 45.46 1370
Rome IT 12.50 41.90 2780
Naples IT 14.27 40.85 910
Turin IT 7.69 45.07 850
Paris FR 2.35 48.86 2150
Lyon FR 4.84 45.76 520
Marseille FR 5.37 43.30 870
Barcelona ES 2.17 41.39 1640
Madrid ES -3.70 40.42 3330
Valencia ES -0.38 39.47 800
Lisbon PT -9.14 38.72 550
Porto PT -8.61 41.15 230
Brussels BE 4.35 50.85 1220
Antwerp BE 4.40 51.22 530
Amsterdam NL 4.90 52.37 870
Rotterdam NL 4.48 51.92 650
London GB -0.13 51.51 8980
Manchester GB -2.24 53.48 550
Birmingham GB -1.90 52.48 1140
Glasgow GB -4.25 55.86 630
Dublin IE -6.26 53.35 590
Copenhagen DK 12.57 55.68 640
Stockholm SE 18.07 59.33 980
Gothenburg SE 11.97 57.71 590
Oslo NO 10.75 59.91 700
Helsinki FI 24.94 60.17 660
Tallinn EE 24.75 59.44 440
Riga LV 24.11 56.95 610
Vilnius LT 25.28 54.69 590
Reykjavik IS -21.94 64.15 130
Cairo EG 31.24 30.04 10100
Alexandria EG 29.92 31.20 5200
Tunis TN 10.17 36.81 640
Algiers DZ 3.06 36.75 3420
Casablanca MA -7.59 33.57 3360
Marrakesh MA -7.99 31.63 930
Dakar SN -17.47 14.72 1180
Accra GH -0.19 5.60 2560
Lagos NG 3.38 6.52 15390
Kano NG 8.52 12.00 4100
Abidjan CI -4.01 5.36 4980
Kinshasa CD 15.27 -4.44 14970
Luanda AO 13.23 -8.84 8330
Addis_Ababa ET 38.75 9.01 4790
Khartoum SD 32.53 15.50 5830
Nairobi KE 36.82 -1.29 4400
Kampala UG 32.58 0.35 1650
Kigali RW 30.06 -1.94 1130
Dar_es_Salaam TZ 39.21 -6.79 4360
Lusaka ZM 28.32 -15.39 2470
Harare ZW 31.05 -17.83 1490
Maputo MZ 32.58 -25.97 1100
Johannesburg ZA 28.05 -26.20 5640
Cape_Town ZA 18.42 -33.92 4620
Durban ZA 31.02 -29.86 3720
Antananarivo MG 47.51 -18.88 1280
New_York US -74.01 40.71 8800
Los_Angeles US -118.24 34.05 3900
Chicago US -87.63 41.88 2750
Houston US -95.37 29.76 2300
Phoenix US -112.07 33.45 1610
Philadelphia US -75.17 39.95 1600
San_Antonio US -98.49 29.42 1430
San_Diego US -117.16 32.72 1390
Dallas US -96.80 32.78 1300
Austin US -97.74 30.27 960
San_Francisco US -122.42 37.77 870
Seattle US -122.33 47.61 740
Denver US -104.99 39.74 720
Boston US -71.06 42.36 680
Miami US -80.19 25.76 440
Atlanta US -84.39 33.75 500
Toronto CA -79.38 43.65 2790
Montreal CA -73.57 45.50 1760
Vancouver CA -123.12 49.28 660
Calgary CA -114.07 51.05 1310
Mexico_City MX -99.13 19.43 9210
Guadalajara MX -103.35 20.67 1390
Monterrey MX -100.32 25.69 1140
Havana CU -82.37 23.11 2130
Guatemala_City GT -90.51 14.63 1200
Panama_City PA -79.52 8.98 1090
Bogota CO -74.07 4.71 7740
Medellin CO -75.56 6.24 2530
Caracas VE -66.90 10.48 2250
Quito EC -78.47 -0.18 1980
Lima PE -77.04 -12.05 10090
La_Paz BO -68.15 -16.50 820
Santiago CL -70.67 -33.45 6260
Buenos_Aires AR -58.38 -34.60 3120
Cordoba AR -64.19 -31.42 1570
Montevideo UY -56.16 -34.90 1320
Asuncion PY -57.58 -25.26 520
Sao_Paulo BR -46.63 -23.55 11450
Rio_de_Janeiro BR -43.17 -22.91 6210
Salvador BR -38.51 -12.97 2420
Brasilia BR -47.88 -15.79 2820
Fortaleza BR -38.54 -3.73 2430
Manaus BR -60.02 -3.12 2060
Sydney AU 151.21 -33.87 5310
Melbourne AU 144.96 -37.81 5080
Brisbane AU 153.03 -27.47 2560
Perth AU 115.86 -31.95 2120
Adelaide AU 138.60 -34.93 1380
Auckland NZ 174.76 -36.85 1470
Wellington NZ 174.78 -41.29 210
Honolulu US -157.86 21.31 350
"""

_DECLARATION: JsonObject = {
    "name": "cities",
    "access_rules": {"read": True},
    "indexes": [
        {"name": "by-population", "fields": [["population", -1]]},
        {"name": "by-country", "fields": [["country", 1], ["population", -1]]},
    ],
}


def cities() -> SampleCollection:
    """Return the data set."""
    return SampleCollection(_DECLARATION, [_city(line) for line in _CITIES.strip().splitlines()])


def _city(line: str) -> JsonObject:
    name, country, longitude, latitude, thousands = line.split()
    return {
        "_id": name.lower().replace("_", "-"),
        "name": name.replace("_", " "),
        "country": country,
        "population": int(thousands) * 1000,
        "place": {"type": "Point", "coordinates": [float(longitude), float(latitude)]},
    }
