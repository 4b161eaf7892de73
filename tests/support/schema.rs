//! Checks JSON against docs/insight.schema.json: as much of JSON Schema as that file uses, and no more.
use serde_json::Value;

pub struct Schema(Value);

impl Schema {
    /// `root` is the workspace's folder.
    pub fn read(root: &std::path::Path) -> Schema {
        let text = std::fs::read_to_string(root.join("docs/insight.schema.json")).expect("the schema is there");
        let schema = Schema(serde_json::from_str(&text).expect("the schema is JSON"));
        schema.0["$defs"].as_object().unwrap().values().for_each(|s| schema.known(s));
        schema
    }

    /// The strings that a definition allows.
    #[allow(dead_code)]
    pub fn names(&self, definition: &str) -> Vec<&str> {
        self.0["$defs"][definition]["enum"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect()
    }

    /// Ends the test where the text is not what the definition says.
    #[track_caller]
    pub fn check(&self, definition: &str, json: &str) -> Value {
        let value: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{definition}: {e} in {json}"));
        let schema = &self.0["$defs"][definition];
        assert!(schema.is_object(), "no definition {definition}");
        if let Err(why) = self.fits(schema, &value, definition) {
            panic!("{why}\n{value:#}");
        }
        value
    }

    /// A word that is not understood here would not be checked.
    fn known(&self, schema: &Value) {
        let words = [
            "description",
            "enum",
            "type",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "anyOf",
            "$ref",
            "minimum",
        ];
        let object = schema.as_object().expect("a schema is an object");
        object.keys().for_each(|k| assert!(words.contains(&k.as_str()), "the check does not know `{k}`"));
        for (word, part) in object {
            match (word.as_str(), part) {
                ("properties", Value::Object(all)) => all.values().for_each(|s| self.known(s)),
                ("anyOf", Value::Array(all)) => all.iter().for_each(|s| self.known(s)),
                ("items", one) | ("additionalProperties", one @ Value::Object(_)) => self.known(one),
                _ => {}
            }
        }
    }

    fn fits(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        if let Some(name) = schema["$ref"].as_str() {
            let definition = self.0.pointer(&name[1..]).ok_or_else(|| format!("{name} is not defined"))?;
            return self.fits(definition, value, at);
        }
        if let Some(ways) = schema["anyOf"].as_array() {
            let failures: Vec<String> = ways.iter().filter_map(|w| self.fits(w, value, at).err()).collect();
            return if failures.len() < ways.len() { Ok(()) } else { Err(failures.join("\n")) };
        }
        if let Some(names) = schema["enum"].as_array()
            && !names.contains(value)
        {
            return Err(format!("{at}: {value} is none of {names:?}"));
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        };
        let is = |kind: &&str| match *kind {
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            other => panic!("the check does not know the type `{other}`"),
        };
        if !kinds.is_empty() && !kinds.iter().any(is) {
            return Err(format!("{at}: {value} is no {kinds:?}"));
        }
        if let (Some(least), Some(n)) = (schema["minimum"].as_f64(), value.as_f64())
            && n < least
        {
            return Err(format!("{at}: {n} is less than {least}"));
        }
        for (i, item) in value.as_array().into_iter().flatten().enumerate() {
            self.fits(&schema["items"], item, &format!("{at}[{i}]"))?;
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.get(name).is_none() {
                return Err(format!("{at}: `{name}` is missing"));
            }
        }
        for (name, part) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{name}");
            match (&schema["properties"][name], &schema["additionalProperties"]) {
                (Value::Null, Value::Bool(false)) => return Err(format!("{at} is not in the schema")),
                (Value::Null, other @ Value::Object(_)) => self.fits(other, part, &at)?,
                (Value::Null, _) => {}
                (known, _) => self.fits(known, part, &at)?,
            }
        }
        Ok(())
    }
}
