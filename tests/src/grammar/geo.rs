//! Places. Many lie near each other, some at the edges of the world, so that searches meet both.

use super::{Compare, Grammar, Words, words};

impl Grammar {
    pub(super) fn geo(&mut self) -> (Words, Compare) {
        let key = self.key_of("geo");
        let all = match self.random.below(20) {
            0..6 => self.geoadd(key),
            6 => self.places_named(words(&[b"GEOPOS", &key])),
            7 => self.places_named(words(&[b"GEOHASH", &key])),
            8 => {
                let mut all = words(&[b"GEODIST", &key, &self.place_name(), &self.place_name()]);
                if self.random.one_in(2) {
                    all.push(self.unit());
                }
                all
            }
            9..14 => self.geosearch(words(&[b"GEOSEARCH", &key]), false),
            14 => {
                let all = words(&[b"GEOSEARCHSTORE", &self.key_of("geo"), &key]);
                self.geosearch(all, true)
            }
            15..18 => self.georadius(key),
            18 => words(&[b"ZREM", &key, &self.place_name()]),
            _ => words(&[b"ZRANGE", &key, b"0", b"-1", b"WITHSCORES"]),
        };
        (all, Compare::Bytes)
    }

    fn place_name(&mut self) -> Vec<u8> {
        format!("p{}", self.random.below(40)).into_bytes()
    }

    fn places_named(&mut self, mut all: Words) -> Words {
        for _ in 0..self.random.below(5) {
            all.push(self.place_name());
        }
        all
    }

    fn degrees(&mut self, limit: i64) -> Vec<u8> {
        let fraction = self.random.below(1_000_000);
        let whole = match self.random.below(3) {
            0 => self.random.below(2 * limit as u64) as i64 - limit,
            _ => 10 + self.random.below(3) as i64,
        };
        format!("{whole}.{fraction:06}").into_bytes()
    }

    fn longitude(&mut self) -> Vec<u8> {
        match self.random.below(20) {
            0 => self.from(&["180", "-180", "179.999999", "-179.999999", "0", "181", "x", "nan", "inf"]),
            _ => self.degrees(180),
        }
    }

    fn latitude(&mut self) -> Vec<u8> {
        match self.random.below(20) {
            0 => self.from(&["85.05112878", "-85.05112878", "85", "-85", "0", "86", "x", ""]),
            _ => self.degrees(85),
        }
    }

    fn geoadd(&mut self, key: Vec<u8>) -> Words {
        let mut all = words(&[b"GEOADD", &key]);
        while self.random.one_in(4) {
            all.push(self.from(&["NX", "XX", "CH", "CH"]));
        }
        for _ in 0..=self.random.below(8) {
            all.extend(words(&[&self.longitude(), &self.latitude(), &self.place_name()]));
        }
        all
    }

    fn unit(&mut self) -> Vec<u8> {
        self.from(&["m", "km", "km", "km", "ft", "mi", "KM", "x"])
    }

    fn reach(&mut self) -> Vec<u8> {
        match self.random.below(10) {
            0 => self.from(&["0", "-1", "x", "1e300", "inf", "0.5", "20000"]),
            1..4 => self.random.below(20_000).to_string().into_bytes(),
            _ => self.random.below(500).to_string().into_bytes(),
        }
    }

    fn search_options(&mut self, all: &mut Words) {
        for option in ["ASC", "DESC", "WITHDIST", "WITHHASH", "WITHCOORD"] {
            if self.random.one_in(4) {
                all.push(option.into());
            }
        }
        if self.random.one_in(3) {
            all.extend(words(&[b"COUNT", &self.from(&["1", "2", "5", "100", "0", "x"])]));
        }
        if self.random.one_in(4) {
            all.push(b"ANY".to_vec());
        }
    }

    fn geosearch(&mut self, mut all: Words, stores: bool) -> Words {
        if self.random.one_in(3) {
            all.extend(words(&[b"FROMLONLAT", &self.longitude(), &self.latitude()]));
        } else if !self.random.one_in(20) {
            all.extend(words(&[b"FROMMEMBER", &self.place_name()]));
        }
        if self.random.one_in(2) {
            all.extend(words(&[b"BYRADIUS", &self.reach(), &self.unit()]));
        } else if !self.random.one_in(20) {
            all.extend(words(&[b"BYBOX", &self.reach(), &self.reach(), &self.unit()]));
        }
        if stores && self.random.one_in(2) {
            all.push(b"STOREDIST".to_vec());
        } else {
            self.search_options(&mut all);
        }
        all
    }

    fn georadius(&mut self, key: Vec<u8>) -> Words {
        let mut all = if self.random.one_in(2) {
            let name = self.from(&["GEORADIUS", "GEORADIUS", "GEORADIUS_RO"]);
            words(&[&name, &key, &self.longitude(), &self.latitude()])
        } else {
            let name = self.from(&["GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO"]);
            words(&[&name, &key, &self.place_name()])
        };
        all.extend(words(&[&self.reach(), &self.unit()]));
        if self.random.one_in(5) {
            all.extend(words(&[&self.from(&["STORE", "STOREDIST"]), &self.key_of("geo")]));
        }
        self.search_options(&mut all);
        all
    }
}
