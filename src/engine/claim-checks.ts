import type { Pod } from "../api/pod.ts";
import type { RunClaims } from "../claims/run-claims.ts";
import type { HealthCheck } from "../server/local-api.ts";

/**
 * Claims of `podwright run` that pods wait for.
 * @param wanted the desired pods: terminating ones wait for no claim
 */
export function claimChecks(
  claims: Pick<RunClaims, "views" | "missing"> | undefined,
  wanted: readonly Pod[],
): HealthCheck[] {
  if (claims === undefined) return [];
  const check = (detail: string, remedy: string): HealthCheck => {
    return { name: "claims", ok: true, warning: true, detail, remedy };
  };
  const uids = new Set(wanted.map(({ metadata }) => metadata.uid));
  const unbound = claims
    .views()
    .filter(({ phase, usedBy }) => phase === "Pending" && usedBy.some(({ uid }) => uids.has(uid)))
    .map(({ namespace, name, message }) => {
      return check(`claim ${namespace}/${name} is not bound: ${message}`, "add a matching PersistentVolume");
    });
  const missing = claims.missing(wanted).map((key) => {
    return check(`claim ${key} does not exist`, "add the PersistentVolumeClaim to the manifests of 'podwright run'");
  });
  return [...missing, ...unbound];
}
