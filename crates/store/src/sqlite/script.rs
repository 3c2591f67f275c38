//! The SQL of an append. The statements are of the common dialect; that they go together in one
//! text with one list of arguments is particular to SQLite.

/// One append as a script, so that it costs one trip to the database's thread. Its arguments:
/// `$1` session, `$2` the last place the caller knows, `$3` time; then those of each part, in the
/// order in which the parts are added.
///
/// Every statement asks again whether the session is where the caller thinks it is. Where it is
/// not, none of them does anything and no row comes back.
pub(crate) struct AppendScript {
    text: String,
    arguments: usize,
    place: usize,
}

impl AppendScript {
    /// The beginning of an append.
    pub(crate) fn begin() -> Self {
        Self {
            // Locked for writing from the start: two transactions that both read and then want
            // to write would each wait for the other.
            text: "BEGIN IMMEDIATE; ".to_owned(),
            ..Self::after(0)
        }
    }

    /// More of an append that has come to `place` entries, or all of one within a transaction of
    /// the caller.
    pub(crate) fn after(place: usize) -> Self {
        Self {
            text: String::new(),
            arguments: 3,
            place,
        }
    }

    /// An entry; its arguments are its id and its body.
    pub(crate) fn entry(&mut self) {
        self.place += 1;
        let [id, body] = self.slots();
        let place = self.place;
        self.text += &format!(
            "INSERT INTO entries (session_id, seq, id, at, body) \
             SELECT id, last_seq + {place}, ${id}, $3, ${body} \
             FROM sessions WHERE id = $1 AND last_seq = $2; "
        );
    }

    /// The call of a model that the last entry tells of; its arguments are the model, the five
    /// counts of `Usage` in their order, and the cost.
    pub(crate) fn usage(&mut self) {
        let [model, input, output, creation, read, creation_1h, nanos] = self.slots();
        let place = self.place;
        self.text += &format!(
            "INSERT INTO usage (session_id, seq, model, input_tokens, output_tokens, \
             cache_creation_input_tokens, cache_read_input_tokens, \
             cache_creation_1h_input_tokens, cost_nanos, at) \
             SELECT id, last_seq + {place}, ${model}, ${input}, ${output}, ${creation}, ${read}, \
             ${creation_1h}, ${nanos}, $3 FROM sessions WHERE id = $1 AND last_seq = $2; "
        );
    }

    /// The time of the last use, where it is not the same second: two indexes follow it, which
    /// would be most of what an append writes.
    pub(crate) fn use_time(&mut self) {
        self.text += "UPDATE sessions SET updated_at = $3 WHERE id = $1 AND last_seq = $2 \
                      AND updated_at NOT BETWEEN $3 - 999999 AND $3; ";
    }

    /// The exact time of the last use.
    pub(crate) fn exact_use_time(&mut self) {
        self.text += "UPDATE sessions SET updated_at = $3 WHERE id = $1 AND last_seq = $2; ";
    }

    /// The end; its arguments are the title, the five counts of `Usage`, the cost and whether
    /// that is unknown. A row comes back when the append took place.
    pub(crate) fn end(&mut self) {
        let [
            title,
            input,
            output,
            creation,
            read,
            creation_1h,
            nanos,
            unknown,
        ] = self.slots();
        let sums = [
            sum("input_tokens", input),
            sum("output_tokens", output),
            sum("cache_creation_input_tokens", creation),
            sum("cache_read_input_tokens", read),
            sum("cache_creation_1h_input_tokens", creation_1h),
            sum("cost_nanos", nanos),
        ];
        let (sums, place) = (sums.join(", "), self.place);
        self.text += &format!(
            "UPDATE sessions SET title = COALESCE(title, ${title}), \
             last_seq = last_seq + {place}, {sums}, cost_unknown = cost_unknown OR ${unknown} \
             WHERE id = $1 AND last_seq = $2 RETURNING last_seq"
        );
    }

    /// Ends the transaction that `begin` began.
    pub(crate) fn commit(&mut self) {
        self.text += "; COMMIT";
    }

    /// The script.
    pub(crate) fn text(self) -> String {
        self.text
    }

    /// The numbers of the next arguments.
    fn slots<const N: usize>(&mut self) -> [usize; N] {
        std::array::from_fn(|_| {
            self.arguments += 1;
            self.arguments
        })
    }
}

/// Stops at the largest number there is: a provider that reports absurd counts must not make
/// its session unreadable.
fn sum(column: &str, slot: usize) -> String {
    const MOST: i64 = i64::MAX;
    format!(
        "{column} = CASE WHEN {column} > {MOST} - ${slot} THEN {MOST} ELSE {column} + ${slot} END"
    )
}
