//! What the servers of a closed Internet did, in words.

use measure::internet::{Internet, ZoneServer};
use measure::notation::{count, counted};

/// `root: 3 queries, 3 responses, 0 lost; ...`, without a line break.
pub fn text(internet: &Internet) -> String {
    let each = internet.servers.iter().map(of_server);
    each.collect::<Vec<String>>().join("; ")
}

fn of_server(ZoneServer { name, counts }: &ZoneServer) -> String {
    let queries = match counts.queries {
        1 => "1 query".to_owned(),
        queries => format!("{} queries", count(queries)),
    };
    let (responses, lost) = (counted(counts.responses, "response"), count(counts.lost));
    format!("{name}: {queries}, {responses}, {lost} lost")
}

#[cfg(test)]
mod tests {
    use measure::internet::ZoneCounts;

    use super::*;

    #[test]
    fn each_server_says_what_it_received_answered_and_lost() {
        let server = |name: &str, queries, lost| ZoneServer {
            name: name.to_owned(),
            counts: ZoneCounts {
                queries,
                responses: queries - lost,
                lost,
            },
        };
        let internet = Internet {
            servers: vec![server("root", 1, 0), server("zone", 1_200, 12)],
        };
        let expected = "root: 1 query, 1 response, 0 lost; \
                        zone: 1,200 queries, 1,188 responses, 12 lost";
        assert_eq!(text(&internet), expected);
    }
}
