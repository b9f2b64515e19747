import type { CsiDriver } from "../api/csi-node.ts";
import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { goJson } from "../base/go-json.ts";
import type { Json } from "../base/json.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { SecretPlace } from "./source.ts";

/** A service account token and its expiry (RFC 3339). */
export interface AccountToken {
  readonly token: string;
  readonly expirationTimestamp: string;
}

/** The cluster objects that drivers' calls need. */
export interface CallObjects {
  /** A Secret's values; undefined: it does not exist. */
  secret(place: SecretPlace, signal: AbortSignal): Promise<ReadonlyMap<string, Uint8Array> | undefined>;
  /** @throws Error if the API server issues none */
  token(pod: Pod, request: TokenWish, signal: AbortSignal): Promise<AccountToken>;
}

export interface TokenWish {
  /** Empty: the API server's default. */
  readonly audience: string;
  /** Undefined: one hour. */
  readonly expirationSeconds: number | undefined;
}

const tokensKey = "csi.storage.k8s.io/serviceAccount.tokens";

/**
 * The values of a Secret for a call.
 * @param reference upstream's term: `NodePublishSecretRef`
 * @throws VolumeError
 */
export async function callSecrets(
  objects: CallObjects,
  reference: string,
  place: SecretPlace | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  if (place === undefined) return {};
  const { namespace, name } = place;
  const failed = (why: string): VolumeError => {
    const found = `failed to find the secret ${name} in the namespace ${namespace} with error: ${why}`;
    return new VolumeError(`fetching ${reference} ${namespace}/${name} failed: kubernetes.io/csi: ${found}`);
  };
  let values: ReadonlyMap<string, Uint8Array> | undefined;
  try {
    values = await objects.secret(place, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw failed(errorMessage(error));
  }
  if (values === undefined) throw failed(`secrets ${JSON.stringify(name)} not found`);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const texts = [...values].map(([key, value]) => {
    try {
      return [key, decoder.decode(value)] as const;
    } catch {
      // gRPC requires text; the value itself is never shown.
      throw failed(`the value of ${JSON.stringify(key)} is not UTF-8`);
    }
  });
  return Object.fromEntries(texts);
}

/** The pod's service account tokens, one for each audience that the driver requests. Secret: never log them. */
export async function callTokens(
  objects: CallObjects,
  pod: Pod,
  driver: Pick<CsiDriver, "spec"> | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const wanted = driver?.spec.tokenRequests ?? [];
  if (wanted.length === 0) return {};
  const tokens: [string, Json][] = [];
  for (const { audience, expirationSeconds } of wanted) {
    const wish = { audience, expirationSeconds: expirationSeconds ?? undefined };
    const { token, expirationTimestamp } = await objects.token(pod, wish, signal);
    tokens.push([audience, { token, expirationTimestamp }]);
  }
  const sorted = tokens.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return { [tokensKey]: goJson(Object.fromEntries(sorted)) };
}
