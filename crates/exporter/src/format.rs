//! The formats, and which of them a scraper accepts.

/// How metrics are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    #[default]
    Text,
    /// OpenMetrics 1.0.0, as text.
    OpenMetrics,
    /// Messages of `io.prometheus.client`, each with its length; the one with native histograms.
    Protobuf,
}

impl Format {
    /// Its media type with parameters.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }

    /// The one that an `Accept` header prefers; the first of those it prefers alike. Text if it
    /// accepts none of them: exporters do not answer 406.
    pub fn negotiate(accept: &str) -> Format {
        let mut best = (0, Format::Text);
        for range in accept.split(',') {
            if let Some((format, quality)) = parse_range(range)
                && quality > best.0
            {
                best = (quality, format);
            }
        }
        best.1
    }
}

/// The format that a media range is for, and its quality in thousandths.
fn parse_range(range: &str) -> Option<(Format, u32)> {
    let mut parts = range.split(';').map(str::trim);
    let media_type = parts.next()?.to_ascii_lowercase();
    let (mut quality, mut version) = (1_000, None);
    let (mut proto, mut encoding) = (None, None);
    for parameter in parts {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => quality = thousandths(value)?,
            "version" => version = Some(value),
            "proto" => proto = Some(value),
            "encoding" => encoding = Some(value),
            _ => {}
        }
    }
    let format = match media_type.as_str() {
        "application/vnd.google.protobuf"
            if proto == Some("io.prometheus.client.MetricFamily")
                && encoding == Some("delimited") =>
        {
            Format::Protobuf
        }
        "application/openmetrics-text" if matches!(version, None | Some("1.0.0" | "0.0.1")) => {
            Format::OpenMetrics
        }
        "text/plain" if matches!(version, None | Some("0.0.4")) => Format::Text,
        "text/*" | "*/*" => Format::Text,
        _ => return None,
    };
    Some((format, quality))
}

fn thousandths(value: &str) -> Option<u32> {
    let quality: f64 = value.parse().ok()?;
    (0.0..=1.0)
        .contains(&quality)
        .then(|| (quality * 1_000.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOBUF: &str = "application/vnd.google.protobuf;\
                            proto=io.prometheus.client.MetricFamily;encoding=delimited";

    #[test]
    fn scrapers_get_the_format_that_they_prefer() {
        let prometheus_2 = "application/openmetrics-text;version=1.0.0,\
                            application/openmetrics-text;version=0.0.1;q=0.75,\
                            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let native = format!(
            "{PROTOBUF},{}",
            prometheus_2.replace("1.0.0,", "1.0.0;q=0.8,")
        );
        let escaping = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                        application/openmetrics-text;version=0.0.1;q=0.5,\
                        text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("text/html, */*;q=0.1", Format::Text),
            (prometheus_2, Format::OpenMetrics),
            (native.as_str(), Format::Protobuf),
            (escaping, Format::OpenMetrics),
            ("application/json", Format::Text),
            ("application/openmetrics-text;q=0, text/plain", Format::Text),
            ("application/openmetrics-text;q=x, text/plain", Format::Text),
            ("application/vnd.google.protobuf", Format::Text),
            (
                "application/openmetrics-text; version=\"1.0.0\"",
                Format::OpenMetrics,
            ),
        ] {
            assert_eq!(Format::negotiate(accept), format, "{accept}");
        }
    }
}
