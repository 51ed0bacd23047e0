//! How each source is asked.

use std::path::PathBuf;
use std::time::Duration;

use crate::asked::Asked;
use crate::bind::BindChannel;
use crate::control::UnboundControl;
use crate::gap::Gap;
use crate::http::{Client, Url};
use crate::knot::KnotControl;
use crate::proc::{GroupSource, HostSource, Program, Root, Target};
use crate::profile::{Access, Picker};
use crate::query_api::QueryApi;
use crate::source::{Answer, Source};
use crate::stream::{Allowance, Limits};
use crate::{AskedError, exposition};

/// How a source is asked: the source itself, or a Prometheus that is asked once at the end.
pub(crate) enum Opened {
    Source(Box<dyn Source>),
    Later(Box<QueryApi>),
}

/// Opens what was asked for. Connects to nothing yet.
pub(crate) fn open(asked: &Asked, picker: &Picker) -> Result<Opened, AskedError> {
    let place = asked.place.as_str();
    let wrong = |what: String| AskedError::of(asked, format!("{}: {what}", asked.shown()));
    let url = || Url::parse(place).map_err(wrong);
    let client = || Client::new(asked.credentials.clone(), asked.network.clone());
    let source: Box<dyn Source> = match asked.profile.access {
        Access::Process => {
            let target = Target::parse(place).map_err(wrong)?;
            Box::new(Program::new(Root::this(), target))
        }
        Access::Group => Box::new(GroupSource::new(Root::this(), place).map_err(wrong)?),
        Access::Host => Box::new(HostSource::new(Root::this())),
        Access::Exposition(path) | Access::Pod(path) => {
            let url = url()?;
            let url = if url.has_no_path() {
                url.below(path)
            } else {
                url
            };
            Box::new(Exposition {
                client: client(),
                url,
                picker: picker.clone(),
            })
        }
        Access::BindChannel => Box::new(BindChannel::new(client(), url()?)),
        Access::UnboundControl => Box::new(UnboundControl::new(asked).map_err(wrong)?),
        Access::KnotControl => {
            Box::new(KnotControl::new(PathBuf::from(place), asked.inside.clone()))
        }
        Access::QueryApi => {
            return QueryApi::new(client(), url()?, asked)
                .map(|later| Opened::Later(Box::new(later)))
                .map_err(wrong);
        }
    };
    Ok(Opened::Source(source))
}

/// An exposition over HTTP.
struct Exposition {
    client: Client,
    url: Url,
    picker: Picker,
}

impl Source for Exposition {
    fn read(&mut self, allowance: &Allowance) -> Result<Answer, Gap> {
        let body = self.client.get(&self.url, allowance)?;
        let octets = body.len() as u64;
        let text =
            String::from_utf8(body).map_err(|_| Gap::Malformed("it is not UTF-8".to_owned()))?;
        let reading = exposition::parse(&text, |name| self.picker.wants(name));
        Ok(Answer {
            reading: reading.map_err(Gap::Malformed)?,
            octets,
        })
    }
}

/// Limits of one scrape for a source that is asked so often.
pub(crate) fn limits(asked: &Asked) -> Limits {
    Limits {
        time: asked.time_max.unwrap_or(TIME_MAX),
        ..Limits::default()
    }
}

/// A scrape that takes longer is given up.
const TIME_MAX: Duration = Duration::from_secs(2);
