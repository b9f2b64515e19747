import type { CertificateAuthority } from "./certificates.ts";
import { later } from "./later.ts";
import { nodeNameOf } from "./node-authorizer.ts";
import { type ApiObject, draftAt, draftOf, fieldsAt, itemsAt, listAt, numberAt, textAt, timestamp } from "./objects.ts";
import { readRequest, type SigningRequest } from "./pkcs10.ts";
import type { StoreEvent, Store } from "./store.ts";

const resource = "certificatesigningrequests.certificates.k8s.io";
const kubeletClient = "kubernetes.io/kube-apiserver-client-kubelet";
const kubeletServing = "kubernetes.io/kubelet-serving";

/** Key usages by signer. */
const purposes: Readonly<Record<string, "client" | "server">> = {
  "kubernetes.io/kube-apiserver-client": "client",
  [kubeletClient]: "client",
  [kubeletServing]: "server",
};

export interface SignerOptions {
  /** Whether to approve a new request. Default: client certificates of nodes, like kube-controller-manager. */
  readonly approves?: (request: ApiObject) => boolean;
  /** Maximum validity of certificates. Default: a year. */
  readonly certificateMs?: number;
  /** Backdating of certificates, for clocks that are behind. Default: five minutes, as upstream. */
  readonly backdateMs?: number;
}

/** A bootstrapping node requests its first certificate, and a node its next. */
function approvesNodeClients(request: ApiObject): boolean {
  if (textAt(request, "spec.signerName") !== kubeletClient) return false;
  const groups = listAt(request, "spec.groups").map(String);
  if (groups.includes("system:bootstrappers")) return true;
  const name = nodeNameOf({ name: textAt(request, "spec.username"), groups });
  return (
    name !== undefined && readRequest(textAt(request, "spec.request")).subject.commonName === `system:node:${name}`
  );
}

/** Why a signer refuses a request; undefined: it signs (KEP-1513; certificates/v1 of the API). */
function objection(request: ApiObject, parsed: SigningRequest): string | undefined {
  const signer = textAt(request, "spec.signerName");
  if (signer !== kubeletClient && signer !== kubeletServing) return undefined;
  const { commonName, organizations = [] } = parsed.subject;
  if (organizations.length !== 1 || organizations[0] !== "system:nodes") {
    return "subject organization is not system:nodes";
  }
  if (!commonName.startsWith("system:node:")) return "subject common name does not begin with system:node:";
  if (parsed.hasOtherNames) return "Email or URI subject alternative names are not allowed";
  const names = parsed.dnsNames.length + parsed.ipAddresses.length;
  if (signer === kubeletServing && names === 0) return "DNS or IP subjectAltName is required";
  if (signer === kubeletClient && names > 0) return "DNS and IP subjectAltNames are not allowed";
  const purpose = signer === kubeletServing ? "server auth" : "client auth";
  const usages = new Set(listAt(request, "spec.usages"));
  const needed = usages.has("digital signature") && usages.has(purpose);
  usages.delete("key encipherment");
  return needed && usages.size === 2 ? undefined : `usages did not match [digital signature, ${purpose}]`;
}

/** Approves and signs certificate requests, like two controllers of kube-controller-manager. */
export function signRequests(store: Store, authority: CertificateAuthority, options: SignerOptions): void {
  const signer = new Signer(store, authority, options);
  store.subscribe((event) => signer.look(event));
}

class Signer {
  readonly #store: Store;
  readonly #authority: CertificateAuthority;
  readonly #options: SignerOptions;

  constructor(store: Store, authority: CertificateAuthority, options: SignerOptions) {
    this.#store = store;
    this.#authority = authority;
    this.#options = options;
  }

  look({ resource: changed, key, deleted }: StoreEvent): void {
    // Deferred until after the triggering change.
    if (changed === resource && !deleted) later(() => this.#handle(key));
  }

  #handle(key: string): void {
    const request = this.#store.get(resource, key);
    if (request === undefined || textAt(request, "status.certificate") !== "") return;
    const conditions = new Set(itemsAt(request, "status.conditions").map(({ type }) => type));
    if (conditions.has("Denied") || conditions.has("Failed")) return;
    if (conditions.has("Approved")) this.#sign(key, request);
    else if ((this.#options.approves ?? approvesNodeClients)(request)) {
      const message = "Auto approving kubelet client certificate after SubjectAccessReview.";
      this.#addCondition(key, request, "Approved", "AutoApproved", message);
    }
  }

  #sign(key: string, request: ApiObject): void {
    const purpose = purposes[textAt(request, "spec.signerName")];
    if (purpose === undefined) return;
    const parsed = readRequest(textAt(request, "spec.request"));
    const why = objection(request, parsed);
    if (why !== undefined) return this.#addCondition(key, request, "Failed", "SignerValidationFailure", why);
    const longestMs = this.#options.certificateMs ?? 365 * 24 * 3_600_000;
    const askedMs = (numberAt(request, "spec.expirationSeconds") ?? Number.POSITIVE_INFINITY) * 1000;
    const certificate = this.#authority.sign({
      subject: parsed.subject,
      publicKey: parsed.publicKey,
      names: [...parsed.dnsNames, ...parsed.ipAddresses],
      usages: [purpose],
      notBefore: new Date(Date.now() - (this.#options.backdateMs ?? 300_000)),
      notAfter: new Date(Date.now() + Math.min(longestMs, askedMs)),
    });
    const status = { ...fieldsAt(request, "status"), certificate: Buffer.from(certificate).toString("base64") };
    this.#store.put(resource, key, { ...request, status });
  }

  #addCondition(key: string, request: ApiObject, type: string, reason: string, message: string): void {
    const draft = draftOf(request);
    const now = timestamp();
    const condition = { type, status: "True", reason, message, lastUpdateTime: now, lastTransitionTime: now };
    const status = draftAt(draft, "status");
    status["conditions"] = [...itemsAt(request, "status.conditions"), condition];
    this.#store.put(resource, key, draft);
  }
}
