// A dashboard as a file has it: Grafana's own types, with those of each kind of panel that
// deploy/grafana uses.
import type { AnnotationQuery, Dashboard, DataQuery, FieldConfigSource, Panel, RowPanel } from "@grafana/schema";
import type * as timeline from "./node_modules/@grafana/schema/dist/types/raw/composable/statetimeline/panelcfg/x/types.gen";
import type * as stat from "./node_modules/@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen";
import type * as table from "./node_modules/@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen";
import type * as series from "./node_modules/@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen";
import type { AnnotationTarget } from "./node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen";

// Files have values of enumerations as plain texts, and leave out what has a default.
type Written<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Written<T[K]> } : T;
type Options<T> = T extends object ? { [K in keyof T]?: Options<T[K]> } : T;

// A query of Prometheus, which the schema has no type of.
interface Query extends DataQuery {
    expr: string;
    legendFormat: string;
    instant?: boolean;
    format?: "time_series" | "table" | "heatmap";
}

interface PanelOf<Type, Given, Field> extends Omit<Panel, "type" | "options" | "fieldConfig" | "targets"> {
    type: Type;
    title: string;
    description: string;
    options?: Options<Given>;
    fieldConfig: FieldConfigSource<Field>;
    targets: Query[];
}

type Known =
    | PanelOf<"timeseries", series.Options, series.FieldConfig>
    | PanelOf<"stat", stat.Options, {}>
    | PanelOf<"table", table.Options, {}>
    | PanelOf<"state-timeline", timeline.Options, timeline.FieldConfig>
    | RowPanel;

type Annotation = Omit<AnnotationQuery, "target"> & { target: AnnotationTarget };

export type Board = Written<
    Omit<Dashboard, "annotations" | "panels"> & { annotations: { list: Annotation[] }; panels: Known[] }
>;
