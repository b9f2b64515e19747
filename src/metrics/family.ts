export type MetricType = "counter" | "gauge" | "histogram";

/** How firmly a name stands, in the words of Kubernetes; undefined for those that are not Kubernetes' own. */
export type Stability = "ALPHA" | "BETA" | "STABLE" | undefined;

export interface Sample {
  /** Values of the family's labels, in their order. */
  readonly labels: readonly string[];
  readonly value: number;
  /** When it was measured, wall clock ms; undefined: now. */
  readonly timeMs?: number;
}

export interface HistogramSample {
  readonly labels: readonly string[];
  /** Observations up to each bound, each counted once; one more for those above the last. */
  readonly buckets: readonly number[];
  readonly sum: number;
}

export interface FamilyHead {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly stability: Stability;
  /** Names of its labels. */
  readonly labels: readonly string[];
}

/** All series of one name. */
export type Family =
  | (FamilyHead & { readonly type: "counter" | "gauge"; readonly samples: readonly Sample[] })
  | (FamilyHead & {
      readonly type: "histogram";
      readonly bounds: readonly number[];
      readonly samples: readonly HistogramSample[];
    });
