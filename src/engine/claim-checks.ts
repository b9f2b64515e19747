import type { RunClaims } from "../claims/run-claims.ts";
import type { HealthCheck } from "../server/local-api.ts";

/** Claims of `podwright run` that pods wait for. */
export function claimChecks(claims: Pick<RunClaims, "views" | "missing"> | undefined): HealthCheck[] {
  if (claims === undefined) return [];
  const check = (detail: string, remedy: string): HealthCheck => {
    return { name: "claims", ok: true, warning: true, detail, remedy };
  };
  const unbound = claims
    .views()
    .filter(({ phase, usedBy }) => phase === "Pending" && usedBy.length > 0)
    .map(({ namespace, name, message }) => {
      return check(`claim ${namespace}/${name} is not bound: ${message}`, "give a PersistentVolume that fits");
    });
  const missing = claims.missing().map((key) => {
    return check(`claim ${key} does not exist`, "give the PersistentVolumeClaim document to 'podwright run'");
  });
  return [...missing, ...unbound];
}
