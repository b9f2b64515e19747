import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeCredentialProviders } from "./credential-providers.ts";

const good = {
  name: "ecr",
  matchImages: ["*.dkr.ecr.*.amazonaws.com", "r.io:5000/team"],
  defaultCacheDuration: "12h",
  apiVersion: "credentialprovider.kubelet.k8s.io/v1",
};
const tokens = { serviceAccountTokenAudience: "a", requireServiceAccount: true, cacheType: "Token" };

function decode(providers: unknown, more: object = {}, path = "/p.yaml") {
  const config = { apiVersion: "kubelet.config.k8s.io/v1", kind: "CredentialProviderConfig", providers, ...more };
  return decodeCredentialProviders([{ path, bytes: new TextEncoder().encode(JSON.stringify(config)) }]);
}

test("providers of several files keep their order and all fields", () => {
  const text = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: CredentialProviderConfig
providers:
- name: ecr
  matchImages: ["*.dkr.ecr.*.amazonaws.com"]
  defaultCacheDuration: 1h30m
  apiVersion: credentialprovider.kubelet.k8s.io/v1beta1
  args: [get-credentials]
  env: [{ name: AWS_PROFILE, value: node }]
`;
  const second = {
    apiVersion: "kubelet.config.k8s.io/v1",
    kind: "CredentialProviderConfig",
    providers: [
      {
        ...good,
        name: "acr",
        tokenAttributes: { ...tokens, optionalServiceAccountAnnotationKeys: ["example.org/Role"] },
      },
    ],
  };
  const files = [text, JSON.stringify(second)].map((each, index) => ({
    path: `/${index}.yaml`,
    bytes: new TextEncoder().encode(each),
  }));
  assert.deepEqual(decodeCredentialProviders(files), [
    {
      name: "ecr",
      matchImages: ["*.dkr.ecr.*.amazonaws.com"],
      defaultCacheMs: 5_400_000,
      apiVersion: "credentialprovider.kubelet.k8s.io/v1beta1",
      args: ["get-credentials"],
      env: { AWS_PROFILE: "node" },
      tokens: undefined,
    },
    {
      name: "acr",
      matchImages: good.matchImages,
      defaultCacheMs: 43_200_000,
      apiVersion: good.apiVersion,
      args: [],
      env: {},
      tokens: {
        audience: "a",
        cacheType: "Token",
        required: true,
        requiredAnnotations: [],
        optionalAnnotations: ["example.org/Role"],
      },
    },
  ]);
});

const wrong: readonly (readonly [what: string, providers: unknown, message: RegExp])[] = [
  ["nothing", [], /providers: Required value: at least 1 item in plugins is required/u],
  ["a path for a name", [{ ...good, name: "../sh" }], /"\.\.\/sh": provider name cannot contain '\/'/u],
  ["dots for a name", [{ ...good, name: ".." }], /provider name cannot be '\.\.'/u],
  ["no name", [{ ...good, name: undefined }], /providers\.name: Required value/u],
  ["one name twice", [good, good], /duplicate provider name "ecr" found in configuration file\(s\)/u],
  ["no images", [{ ...good, matchImages: [] }], /at least 1 item in matchImages is required/u],
  ["a URL for an image", [{ ...good, matchImages: ["https://r.io"] }], /"https:\/\/r\.io": match image is invalid/u],
  ["no duration", [{ ...good, defaultCacheDuration: undefined }], /defaultCacheDuration: Required value/u],
  ["a negative duration", [{ ...good, defaultCacheDuration: "-1s" }], /must be greater than or equal to 0/u],
  ["another protocol", [{ ...good, apiVersion: "v1" }], /apiVersion: Unsupported value: "v1": supported values/u],
  [
    "an unknown field",
    [{ ...good, secret: "hunter2" }],
    /error decoding config "\/p\.yaml": providers\.0: unrecognized keys secret$/u,
  ],
  ["a wrong type", [{ ...good, args: "hunter2" }], /providers\.0\.args: invalid type$/u],
  ["no cache type", [{ ...good, tokenAttributes: { ...tokens, cacheType: "" } }], /cacheType is required to be set/u],
  ["another cache type", [{ ...good, tokenAttributes: { ...tokens, cacheType: "Pod" } }], /Unsupported value: "Pod"/u],
  [
    "tokens for an old protocol",
    [{ ...good, apiVersion: "credentialprovider.kubelet.k8s.io/v1beta1", tokenAttributes: tokens }],
    /tokenAttributes is only supported for credentialprovider\.kubelet\.k8s\.io\/v1 API version/u,
  ],
  [
    "annotations of accounts that need not be",
    [
      {
        ...good,
        tokenAttributes: { ...tokens, requireServiceAccount: false, requiredServiceAccountAnnotationKeys: ["a"] },
      },
    ],
    /requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set/u,
  ],
  [
    "annotations that are both",
    [
      {
        ...good,
        tokenAttributes: {
          ...tokens,
          requiredServiceAccountAnnotationKeys: ["a/b"],
          optionalServiceAccountAnnotationKeys: ["a/b", "a b"],
        },
      },
    ],
    /optionalServiceAccountAnnotationKeys: Invalid value: "a b".*\[a\/b\]: annotation keys cannot be both required and optional/u,
  ],
];

for (const [what, providers, message] of wrong) {
  test(`${what} is rejected`, () => {
    assert.throws(
      () => decode(providers),
      (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /hunter2/u);
        return true;
      },
    );
  });
}

test("an invalid CredentialProviderConfig is reported with its file", () => {
  assert.throws(() => decode([good], { kind: "Pod" }), /error decoding config "\/p\.yaml": kind: invalid value/u);
  assert.throws(() => decode([good], { apiVersion: "v1" }), /apiVersion must be one of kubelet\.config\.k8s\.io\/v1,/u);
  const old = { apiVersion: "kubelet.config.k8s.io/v1beta1" };
  assert.throws(() => decode([{ ...good, tokenAttributes: tokens }], old), /tokenAttributes needs apiVersion/u);
  const bytes = new TextEncoder().encode("a: [");
  assert.throws(() => decodeCredentialProviders([{ path: "/q", bytes }]), /error decoding config "\/q"/u);
});
