import type { Family, FamilyHead } from "../metrics/family.ts";

/** Upper bounds of kubelet_certificate_manager_server_rotation_seconds, as upstream's. */
const boundsSeconds = [
  60, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000,
] as const;

/** The metrics of one of the node's certificates. */
export interface CertificateFacts {
  /** Seconds until it expires, whole; infinite if there is no valid one. */
  readonly ttlSeconds: number;
  /** Tries to get a certificate that came to nothing. */
  readonly renewErrors: number;
  /** How old certificates were when others took their place, in seconds. */
  readonly ages: readonly number[];
}

type Head = Omit<FamilyHead, "type" | "stability" | "labels">;

const heads = {
  client: {
    ttl: {
      name: "kubelet_certificate_manager_client_ttl_seconds",
      help: "Gauge of the TTL (time-to-live) of the Kubelet's client certificate. The value is in seconds until certificate expiry (negative if already expired). If client certificate is invalid or unused, the value will be +INF.",
    },
    errors: {
      name: "kubelet_certificate_manager_client_expiration_renew_errors",
      help: "Counter of certificate renewal errors.",
    },
  },
  serving: {
    ttl: {
      name: "kubelet_certificate_manager_server_ttl_seconds",
      help: "Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. The value is in seconds until certificate expiry (negative if already expired). If serving certificate is invalid or unused, the value will be +INF.",
    },
    errors: { name: "kubelet_server_expiration_renew_errors", help: "Counter of certificate renewal errors." },
  },
} as const satisfies Readonly<Record<string, { readonly ttl: Head; readonly errors: Head }>>;

const rotation: Head = {
  name: "kubelet_certificate_manager_server_rotation_seconds",
  help: "Histogram of the number of seconds the previous certificate lived before being rotated.",
};

/** Upstream's metrics of managed certificates; none for certificates from files. Pure. */
export function certificateFamilies(
  client: CertificateFacts | undefined,
  serving: CertificateFacts | undefined,
): Family[] {
  const common = { stability: "ALPHA", labels: [] } as const;
  const both = Object.entries({ client, serving }).flatMap(([purpose, facts]): Family[] => {
    if (facts === undefined) return [];
    const { ttl, errors } = heads[purpose === "client" ? "client" : "serving"];
    return [
      { ...ttl, ...common, type: "gauge", samples: [{ labels: [], value: facts.ttlSeconds }] },
      { ...errors, ...common, type: "counter", samples: [{ labels: [], value: facts.renewErrors }] },
    ];
  });
  if (serving === undefined) return both;
  const buckets = [...boundsSeconds, Number.POSITIVE_INFINITY].map((bound, index) => {
    const above = boundsSeconds[index - 1] ?? Number.NEGATIVE_INFINITY;
    return serving.ages.filter((age) => age > above && age <= bound).length;
  });
  const sum = serving.ages.reduce((total, age) => total + age, 0);
  const sample = { labels: [], buckets, sum };
  return [...both, { ...rotation, ...common, type: "histogram", bounds: boundsSeconds, samples: [sample] }];
}
