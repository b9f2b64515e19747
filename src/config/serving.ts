import { isIpAddress } from "../base/formats.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { openSslCurves } from "./curves.ts";
import type { KubeletConfiguration } from "./defaults.ts";
import { milliseconds } from "./settings.ts";

/** How the kubelet's API is served on a port, and its access control. */
export interface ServingSettings {
  readonly host: string;
  readonly port: number;
  /** 0: not served. */
  readonly readOnlyPort: number;
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** OpenSSL's names, joined by colons. */
  readonly ciphers: string;
  /** Key exchanges in the same format; undefined: OpenSSL's defaults. */
  readonly curves: string | undefined;
  /** Undefined: a self-signed one is created. */
  readonly serving: { readonly certificateFile: string; readonly keyFile: string } | undefined;
  /** Undefined: client certificates are ignored. */
  readonly clientAuthoritiesFile: string | undefined;
  readonly anonymous: boolean;
  /** Bearer tokens are reviewed by the API server, with this cache lifetime; undefined: not accepted. */
  readonly tokenReview: { readonly ttlMs: number } | undefined;
  /** Everyone may do everything, authenticated or not: explicitly configured. */
  readonly everybody: boolean;
  /** Access is reviewed by the API server; undefined: authenticated clients may do everything. */
  readonly accessReview: { readonly allowedMs: number; readonly deniedMs: number } | undefined;
  readonly debugging: boolean;
  readonly systemLogs: boolean;
  readonly streamingIdleMs: number;
}

/**
 * @param isWritten whether a field was set explicitly (`LoadedConfiguration`): opening the node to everyone must be
 * explicit, and is the default with flags only
 * @returns undefined when the API is disabled (enableServer)
 * @throws PodwrightError (bad input) for an invalid address, authorization mode, cipher suite or version, and half a
 * key pair
 */
export function servingSettings(
  configuration: KubeletConfiguration,
  isWritten: (field: string) => boolean = () => false,
): ServingSettings | undefined {
  if (!configuration.enableServer) return undefined;
  const { authentication, authorization, tlsCertFile = "", tlsPrivateKeyFile = "" } = configuration;
  if ((tlsCertFile === "") !== (tlsPrivateKeyFile === "")) {
    throw new PodwrightError(ExitCode.badInput, "tlsCertFile and tlsPrivateKeyFile must be set together", {
      remedy: "set both, or neither for a self-signed certificate",
    });
  }
  if (!isIpAddress(configuration.address)) {
    throw new PodwrightError(
      ExitCode.badInput,
      `address ${JSON.stringify(configuration.address)} is not an IP address`,
      {
        remedy: "use an address of this machine, or 0.0.0.0 or :: for all",
      },
    );
  }
  if (!["AlwaysAllow", "Webhook"].includes(authorization.mode)) {
    throw new PodwrightError(ExitCode.badInput, `unknown authorization mode ${JSON.stringify(authorization.mode)}`, {
      remedy: "authorization.mode is Webhook or AlwaysAllow",
    });
  }
  const clientAuthoritiesFile = authentication.x509?.clientCAFile ?? "";
  return {
    host: configuration.address,
    port: configuration.port,
    readOnlyPort: configuration.readOnlyPort ?? 0,
    minVersion: minVersion(configuration.tlsMinVersion ?? ""),
    ciphers: openSslCiphers(configuration.tlsCipherSuites ?? []),
    curves: openSslCurves(configuration.tlsCurvePreferences ?? []),
    serving: tlsCertFile === "" ? undefined : { certificateFile: tlsCertFile, keyFile: tlsPrivateKeyFile },
    clientAuthoritiesFile: clientAuthoritiesFile === "" ? undefined : clientAuthoritiesFile,
    anonymous: authentication.anonymous.enabled,
    everybody:
      authentication.anonymous.enabled &&
      authorization.mode === "AlwaysAllow" &&
      ["authentication.anonymous.enabled", "authorization.mode"].every(isWritten),
    tokenReview: authentication.webhook.enabled ? { ttlMs: milliseconds(authentication.webhook.cacheTTL) } : undefined,
    accessReview:
      authorization.mode === "AlwaysAllow"
        ? undefined
        : {
            allowedMs: milliseconds(authorization.webhook.cacheAuthorizedTTL),
            deniedMs: milliseconds(authorization.webhook.cacheUnauthorizedTTL),
          },
    debugging: configuration.enableDebuggingHandlers,
    systemLogs: configuration.enableSystemLogHandler,
    streamingIdleMs: streamingIdleMs(configuration),
  };
}

/** Where the self-signed pair is. @param directory `--cert-dir` */
export function selfSignedFiles(directory: string): NonNullable<ServingSettings["serving"]> {
  return { certificateFile: `${directory}/kubelet.crt`, keyFile: `${directory}/kubelet.key` };
}

/** When an idle stream is closed; 0: never. A negative duration means never, too. */
export function streamingIdleMs({ streamingConnectionIdleTimeout }: KubeletConfiguration): number {
  return Math.max(0, milliseconds(streamingConnectionIdleTimeout));
}

/** TLS 1.0 and 1.1 are not supported: anything older than 1.2 means 1.2. */
function minVersion(name: string): ServingSettings["minVersion"] {
  if (["", "VersionTLS10", "VersionTLS11", "VersionTLS12"].includes(name)) return "TLSv1.2";
  if (name === "VersionTLS13") return "TLSv1.3";
  throw new PodwrightError(ExitCode.badInput, `unknown tls version ${JSON.stringify(name)}`, {
    remedy: "tlsMinVersion is VersionTLS12 or VersionTLS13",
  });
}

/** TLS 1.3: always on and not configurable, as in Go. */
const modernSuites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/** TLS 1.2, with OpenSSL's names: Go's safe suites, and those that upstream accepts with a warning. */
const suites: Readonly<Record<string, string>> = {
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: "ECDHE-ECDSA-AES128-GCM-SHA256",
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: "ECDHE-ECDSA-AES256-GCM-SHA384",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: "ECDHE-RSA-AES128-GCM-SHA256",
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: "ECDHE-RSA-AES256-GCM-SHA384",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: "ECDHE-ECDSA-AES128-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: "ECDHE-ECDSA-AES256-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: "ECDHE-ECDSA-AES128-SHA256",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: "ECDHE-RSA-AES128-SHA",
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: "ECDHE-RSA-AES256-SHA",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: "ECDHE-RSA-AES128-SHA256",
  TLS_RSA_WITH_AES_128_GCM_SHA256: "AES128-GCM-SHA256",
  TLS_RSA_WITH_AES_256_GCM_SHA384: "AES256-GCM-SHA384",
  TLS_RSA_WITH_AES_128_CBC_SHA: "AES128-SHA",
  TLS_RSA_WITH_AES_256_CBC_SHA: "AES256-SHA",
  TLS_RSA_WITH_AES_128_CBC_SHA256: "AES128-SHA256",
};

/** Go's defaults: only key exchanges with forward secrecy, unlike OpenSSL's defaults. */
const defaultSuites = [
  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
  "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
  "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
  "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
];

function openSslCiphers(names: readonly string[]): string {
  const chosen = (names.length === 0 ? defaultSuites : names).flatMap((name) => {
    if (modernSuites.includes(name)) return [];
    const cipher = suites[name];
    if (cipher !== undefined) return [cipher];
    throw new PodwrightError(ExitCode.badInput, `tlsCipherSuites: cipher suite ${JSON.stringify(name)} not supported`, {
      remedy: `supported: ${[...modernSuites, ...Object.keys(suites)].join(", ")}`,
    });
  });
  return [...modernSuites, ...chosen].join(":");
}
