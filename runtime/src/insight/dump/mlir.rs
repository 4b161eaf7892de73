//! StableHLO text: operations in their generic and in their own forms, regions, functions, locations.
//!
//! The forms of operations are many and change from version to version; what all have in common is read instead: results, a
//! name, operands, `key = value`, regions, types behind a colon.
use super::locations::Locations;
use super::module::{Argument, Block, From, Module, Op, Ty, Unread};
use super::tokens::{Token, tokens, unquoted};

/// How deep regions may stand in one another.
const DEEPEST: usize = 64;

pub(super) fn read(text: &str) -> Result<Module, Unread> {
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens, at: 0, locations: Locations::of(&tokens) };
    let mut module = Module::default();
    while parser.at < tokens.len() {
        match parser.here() {
            "func.func" => parser.function(&mut module)?,
            "module" if module.name.is_empty() && parser.ahead(1).starts_with('@') => {
                module.name = parser.ahead(1)[1..].to_owned();
                parser.at += 2;
            }
            _ => parser.at += 1,
        }
    }
    match module.main.is_empty() {
        true => Err(Unread { line: 1, why: "it has no `func.func`".into() }),
        false => Ok(module),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    at: usize,
    locations: Locations<'a>,
}

impl<'a> Parser<'a> {
    fn ahead(&self, n: usize) -> &'a str {
        self.tokens.get(self.at + n).map_or("", |t| t.text)
    }

    fn here(&self) -> &'a str {
        self.ahead(0)
    }

    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |t| t.line)
    }

    fn refuse<T>(&self, why: &str) -> Result<T, Unread> {
        Err(Unread { line: self.line(), why: why.into() })
    }

    fn expect(&mut self, text: &str) -> Result<(), Unread> {
        if self.here() != text {
            let found = if self.here().is_empty() { "the end".to_owned() } else { format!("`{}`", self.here()) };
            return self.refuse(&format!("`{text}` is expected, and {found} is there"));
        }
        self.at += 1;
        Ok(())
    }

    /// What stands between two tokens, the second one left out.
    fn between(&self, from: usize, to: usize) -> &'a str {
        let start = self.tokens.get(from).map_or(self.text.len(), |t| t.at);
        let end = to.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(start, |t| t.at + t.text.len());
        self.text.get(start..end.max(start)).unwrap_or_default()
    }

    /// Behind the bracket that closes the one here.
    fn behind_group(&self, from: usize) -> usize {
        let (mut depth, mut at) = (0usize, from);
        while let Some(t) = self.tokens.get(at) {
            match t.text {
                "(" | "[" | "{" | "<" => depth += 1,
                ")" | "]" | "}" | ">" => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        at
    }

    fn function(&mut self, module: &mut Module) -> Result<(), Unread> {
        let line = self.line();
        while !self.here().starts_with('@') {
            if matches!(self.here(), "" | "(" | "{") {
                return self.refuse("a function without a name");
            }
            self.at += 1;
        }
        let name = self.here()[1..].to_owned();
        self.at += 1;
        let mut donated = Vec::new();
        let arguments = self.arguments(&mut donated)?;
        while self.here() != "{" || !self.tokens.get(self.at + 1).is_some_and(|t| t.first) {
            match self.here() {
                // Declared and nothing else.
                "" | "func.func" => return Ok(()),
                "(" | "{" | "<" | "[" => self.at = self.behind_group(self.at),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        let mut block = self.block(DEEPEST)?;
        block.line = line;
        block.arguments = arguments;
        self.expect("}")?;
        if module.main.is_empty() || name == "main" {
            module.main = name.clone();
            module.donated = donated;
        }
        module.functions.insert(name, block);
        Ok(())
    }

    /// `(%a: tensor<4xf32> {…} loc("x"), …)`; the numbers of those whose buffers a result may take.
    fn arguments(&mut self, donated: &mut Vec<usize>) -> Result<Vec<Argument>, Unread> {
        self.expect("(")?;
        let mut all = Vec::new();
        while self.here() != ")" {
            let line = self.line();
            if !self.here().starts_with('%') {
                return self.refuse("an argument is expected");
            }
            let name = self.here().to_owned();
            self.at += 1;
            self.expect(":")?;
            let ty = self.ty();
            let mut from = From::default();
            while !matches!(self.here(), "," | ")") {
                match self.here() {
                    "" => return self.refuse("the arguments have no end"),
                    "loc" => {
                        from = self.locations.read(self.at + 2);
                        self.at = self.behind_group(self.at + 1);
                    }
                    "{" => {
                        let end = self.behind_group(self.at);
                        let attributes = self.between(self.at, end);
                        if attributes.contains("aliasing_output") || attributes.contains("buffer_donor = true") {
                            donated.push(all.len());
                        }
                        self.at = end;
                    }
                    _ => self.at += 1,
                }
            }
            all.push(Argument { name, ty, from, line });
            if self.here() == "," {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(all)
    }

    /// `tensor<4x8xf32>`, or any other type by its name.
    fn ty(&mut self) -> Ty {
        let from = self.at;
        let name = self.here().trim_start_matches('!');
        self.at += 1;
        if self.here() != "<" {
            return Ty { element: name.to_owned(), sizes: vec![] };
        }
        let end = self.behind_group(self.at);
        let inside = self.between(self.at + 1, end.saturating_sub(1));
        self.at = end;
        match name {
            "tensor" => tensor(inside),
            _ => Ty { element: self.between(from, end).to_owned(), sizes: vec![] },
        }
    }

    /// Up to the bracket that closes it.
    fn block(&mut self, depth: usize) -> Result<Block, Unread> {
        if depth == 0 {
            return self.refuse("regions stand too deep in one another");
        }
        let mut block = Block { line: self.line(), ..Block::default() };
        while self.here() != "}" {
            if self.here().is_empty() {
                return self.refuse("a region has no end");
            }
            if self.here().starts_with('^') {
                self.at += 1;
                if self.here() == "(" {
                    block.arguments = self.arguments(&mut Vec::new())?;
                }
                self.expect(":")?;
                continue;
            }
            let op = self.op(depth)?;
            match op.name.as_str() {
                "return" => block.returns = op.inputs,
                _ => block.ops.push(op),
            }
        }
        Ok(block)
    }

    fn op(&mut self, depth: usize) -> Result<Op, Unread> {
        let mut op = Op { line: self.line(), ..Op::default() };
        while self.here().starts_with('%') {
            op.results.push(self.here().to_owned());
            self.at += 1;
            let mut several = None;
            if self.here() == ":" {
                several = self.ahead(1).parse::<usize>().ok();
                self.at += 2;
            }
            if let Some(n) = several {
                /// Results of one operation, at most.
                const MOST: usize = 1 << 13;
                let stem = op.results.pop().unwrap_or_default();
                op.results.extend((0..n.min(MOST)).map(|k| format!("{stem}#{k}")));
            }
            if self.here() == "," {
                self.at += 1;
            }
        }
        if !op.results.is_empty() {
            self.expect("=")?;
        }
        let name = self.here();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '"') {
            return self.refuse("an operation is expected");
        }
        let name = unquoted(name);
        op.name = name.rsplit('.').next().unwrap_or(&name).to_owned();
        self.at += 1;
        self.rest(&mut op, depth)?;
        Ok(op)
    }

    /// Whether the token here begins another operation.
    fn begins(&self) -> bool {
        let Some(t) = self.tokens.get(self.at) else { return true };
        let op = t.is_string() || t.is_word() && (t.text.contains('.') || matches!(t.text, "return" | "call"));
        t.text == "}" || t.first && (t.is_value() || op || t.text.starts_with('^') || t.text.starts_with('#'))
    }

    /// What stands behind the name of an operation.
    fn rest(&mut self, op: &mut Op, depth: usize) -> Result<(), Unread> {
        // Names that the next region has for what is handed to it.
        let mut bound: Vec<Argument> = Vec::new();
        let mut key: Option<String> = None;
        let mut value: Option<usize> = None;
        let mut opened = 0usize;
        while opened > 0 || !self.begins() {
            let text = self.here();
            match text {
                "" => return self.refuse("an operation has no end"),
                "loc" if self.ahead(1) == "(" => {
                    self.flush(op, &mut key, &mut value);
                    if opened == 0 {
                        op.from = self.locations.read(self.at + 2);
                    }
                    self.at = self.behind_group(self.at + 1);
                }
                "{" if self.tokens.get(self.at + 1).is_some_and(|t| t.first) => {
                    self.flush(op, &mut key, &mut value);
                    self.at += 1;
                    let mut region = self.block(depth - 1)?;
                    self.expect("}")?;
                    // `cond` and `do` have the same names.
                    if region.arguments.is_empty() {
                        region.arguments = bound.clone();
                    }
                    op.regions.push(region);
                }
                "reducer" if self.ahead(1) == "(" => {
                    self.at += 1;
                    bound = self.reducer()?;
                }
                "{" => {
                    self.flush(op, &mut key, &mut value);
                    let end = self.behind_group(self.at);
                    self.dictionary(op, end);
                }
                "<" if self.ahead(1) == "{" => {
                    self.flush(op, &mut key, &mut value);
                    self.at += 1;
                    let end = self.behind_group(self.at);
                    self.dictionary(op, end);
                    self.expect(">")?;
                }
                "(" => {
                    self.flush(op, &mut key, &mut value);
                    opened += 1;
                    self.at += 1;
                }
                ")" => {
                    self.flush(op, &mut key, &mut value);
                    opened = opened.saturating_sub(1);
                    self.at += 1;
                }
                "," => {
                    self.flush(op, &mut key, &mut value);
                    self.at += 1;
                }
                ":" if opened == 0 => {
                    self.flush(op, &mut key, &mut value);
                    self.at += 1;
                    self.signature(op);
                }
                _ if text.starts_with('%') => {
                    self.flush(op, &mut key, &mut value);
                    if self.ahead(1) == "=" {
                        let (name, line) = (text.to_owned(), self.line());
                        bound.push(Argument { name, ty: Ty::default(), from: From::default(), line });
                        self.at += 2;
                        continue;
                    }
                    op.inputs.push(self.value());
                }
                "cond" | "do" => self.at += 1,
                _ if text.starts_with('@') && op.name == "call" => {
                    op.calls = Some(text[1..].to_owned());
                    self.at += 1;
                }
                _ if self.tokens[self.at].is_word() && self.ahead(1) == "=" => {
                    self.flush(op, &mut key, &mut value);
                    key = Some(text.to_owned());
                    self.at += 2;
                    value = Some(self.at);
                    // A dictionary as a value.
                    if matches!(self.here(), "{" | "[" | "<") {
                        self.at = self.behind_group(self.at);
                    }
                }
                _ => {
                    value.get_or_insert(self.at);
                    self.at = if matches!(text, "[" | "<") { self.behind_group(self.at) } else { self.at + 1 };
                }
            }
        }
        self.flush(op, &mut key, &mut value);
        Ok(())
    }

    /// A value by its name, with the number of the result.
    fn value(&mut self) -> String {
        let mut name = self.here().to_owned();
        self.at += 1;
        if let Some(t) = self.tokens.get(self.at).filter(|t| t.joined && t.text.starts_with('#')) {
            name += t.text;
            self.at += 1;
        }
        name
    }

    /// `reducer(%a: tensor<f32>, %b: tensor<f32>)`, perhaps several.
    fn reducer(&mut self) -> Result<Vec<Argument>, Unread> {
        let mut all = Vec::new();
        while self.here() == "(" {
            all.extend(self.arguments(&mut Vec::new())?);
        }
        Ok(all)
    }

    /// An attribute ends here.
    fn flush(&self, op: &mut Op, key: &mut Option<String>, value: &mut Option<usize>) {
        let text = value.take().map_or("", |from| self.between(from, self.at));
        match key.take() {
            Some(key) => op.attributes.push((key, text.to_owned())),
            None if text.is_empty() => {}
            None => {
                let key = match text.as_bytes()[0] {
                    b'[' => "slice",
                    _ if text.starts_with("dense") => "value",
                    _ => "form",
                };
                op.attributes.push((key.to_owned(), text.to_owned()));
            }
        }
    }

    /// `{key = value, flag}` up to `end`.
    fn dictionary(&mut self, op: &mut Op, end: usize) {
        self.at += 1;
        while self.at + 1 < end {
            let key = unquoted(self.here());
            self.at += 1;
            let mut text = String::new();
            if self.here() == "=" {
                let from = self.at + 1;
                self.at = from;
                while self.at + 1 < end && self.here() != "," {
                    self.at = if matches!(self.here(), "(" | "[" | "{" | "<") {
                        self.behind_group(self.at)
                    } else {
                        self.at + 1
                    };
                }
                text = self.between(from, self.at.min(end - 1)).to_owned();
            }
            op.attributes.push((key, text));
            if self.here() == "," {
                self.at += 1;
            }
        }
        self.at = end;
    }

    /// Types behind a colon: of the results where there is an arrow, else of operands and results, of which the last ones count.
    fn signature(&mut self, op: &mut Op) {
        let mut types = Vec::new();
        let mut opened = 0usize;
        while opened > 0 || !self.begins() && !matches!(self.here(), "loc" | "{" | "cond" | "reducer") {
            match self.here() {
                "" => break,
                "(" => {
                    opened += 1;
                    self.at += 1;
                }
                ")" => {
                    let Some(left) = opened.checked_sub(1) else { break };
                    opened = left;
                    self.at += 1;
                }
                "->" => {
                    types.clear();
                    self.at += 1;
                }
                "," => self.at += 1,
                _ => types.push(self.ty()),
            }
        }
        let results = op.results.len();
        op.types = types.split_off(types.len().saturating_sub(results.max(1)));
    }
}

/// The inside of `tensor<…>`.
fn tensor(inside: &str) -> Ty {
    let (mut rest, mut sizes) = (inside, Vec::new());
    while let Some((size, more)) = rest.split_once('x') {
        match size.trim() {
            "?" => sizes.push(-1),
            size => match size.parse() {
                Ok(n) => sizes.push(n),
                Err(_) => break,
            },
        }
        rest = more;
    }
    let element = rest.split(", #").next().unwrap_or(rest).trim();
    Ty { element: element.to_owned(), sizes }
}
