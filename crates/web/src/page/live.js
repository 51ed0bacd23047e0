
"use strict";
const line = text => { document.getElementById("connection").textContent = text; };
const query = new URLSearchParams(location.search);
query.set("after", document.body.dataset.number);
const events = new EventSource("events?" + query);
const parse = text => new DOMParser().parseFromString(text, "text/html");
let missed = 0;
// Runs that are there already stay, with the tables that were opened.
const readEarlier = async () => {
  const response = await fetch("earlier" + location.search);
  const earlier = document.getElementById("earlier");
  if (!response.ok || !earlier) return;
  const runs = [...parse(await response.text()).body.children];
  earlier.replaceChildren(...runs.map(run => document.getElementById(run.id) || run));
};
events.onopen = () => line("Live.");
events.onerror = () => line("The connection is lost; connecting again.");
events.onmessage = event => {
  for (const part of parse(event.data).body.children) {
    if (part.id === "missed") {
      missed += Number(part.dataset.count);
      part.textContent = missed + " snapshots were not shown here.";
    }
    const old = document.getElementById(part.id);
    // What is the same stays: screen readers say only what has changed.
    if (!old || old.innerHTML === part.innerHTML) continue;
    old.replaceChildren(...part.childNodes);
    old.hidden = !old.hasChildNodes();
    if (part.id === "earlier-note") readEarlier().catch(() => {});
  }
};
events.addEventListener("end", () => {
  events.close();
  line("The command has ended without a report.");
});
events.addEventListener("report", event => {
  events.close();
  const report = parse(event.data);
  document.replaceChild(document.adoptNode(report.documentElement), document.documentElement);
  const heading = document.querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus();
  }
  scrollTo(0, 0);
});
