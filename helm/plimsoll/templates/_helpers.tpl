{{/* The release's name for everything of this chart. */}}
{{- define "plimsoll.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* Names of pull secrets, each given as a name or as {name: NAME}; those of an umbrella chart count, too. */}}
{{- define "plimsoll.pullSecretNames" -}}
{{- $names := list -}}
{{- $shared := default list (get (default dict .Values.global) "imagePullSecrets") -}}
{{- range concat $shared .Values.imagePullSecrets -}}
{{- if kindIs "map" . -}}{{- $names = append $names .name -}}{{- else -}}{{- $names = append $names . -}}{{- end -}}
{{- end -}}
{{- $names | uniq | join "," -}}
{{- end -}}

{{- define "plimsoll.pullSecrets" -}}
{{- with include "plimsoll.pullSecretNames" . -}}
imagePullSecrets:
  {{- range splitList "," . }}
  - name: {{ . }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "plimsoll.account" -}}
{{ default (include "plimsoll.fullname" .) .Values.serviceAccount.name }}
{{- end -}}

{{/* The Secret with the certificate of external.metrics.k8s.io, and the ClusterRole for those who may read it. */}}
{{- define "plimsoll.metricsSecret" -}}
{{ printf "%s-external-metrics" (include "plimsoll.fullname" .) }}
{{- end -}}

{{/* The labels that select the operator's pod; they never change. */}}
{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: plimsoll-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What is asked for; several operators prefer different nodes, unless their anti-affinity is given. */}}
{{- define "plimsoll.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- if and (gt (int .Values.replicas) 1) (not (hasKey $affinity "podAntiAffinity")) -}}
{{- $selector := include "plimsoll.selector" . | fromYaml -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $selector) -}}
{{- $apart := list (dict "weight" 100 "podAffinityTerm" $term) -}}
{{- $_ := set $affinity "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" $apart) -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- define "plimsoll.labels" -}}
{{ include "plimsoll.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "plimsoll.image" -}}
{{ .image.repository }}:{{ default .chart.AppVersion .image.tag }}
{{- end -}}

{{/* NAMESPACE/NAME of what the operator writes to check its watches: where it may, in a namespace that it watches. */}}
{{- define "plimsoll.canary" -}}
{{- $namespaces := include "plimsoll.namespaces" . | fromJsonArray -}}
{{- $own := or (empty $namespaces) (has .Release.Namespace $namespaces) -}}
{{ ternary .Release.Namespace (first (append $namespaces "")) $own }}/{{ include "plimsoll.fullname" . }}-canary
{{- end -}}

{{/* The namespaces with fleets, as a list; without any, all of them. */}}
{{- define "plimsoll.namespaces" -}}
{{- if eq .Values.rbac.scope "Cluster" -}}
{{ list | toJson }}
{{- else -}}
{{ (default (list .Release.Namespace) .Values.watchNamespaces) | toJson }}
{{- end -}}
{{- end -}}

{{/* What the operator may do with a fleet. */}}
{{- define "plimsoll.rules" -}}
- apiGroups: [plimsoll.dev]
  resources: [brokerfleets]
  verbs: [get, list, watch]
- apiGroups: [plimsoll.dev]
  resources: [brokerclusters]
  verbs: [get, list, watch]
- apiGroups: [plimsoll.dev]
  resources: [hardwareprofiles, feeds, channels]
  verbs: [list, watch]
- apiGroups: [plimsoll.dev]
  resources: [edgebrokers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [plimsoll.dev]
  resources: [loadbalancingsessions]
  verbs: [get, list, watch, create, delete]
- apiGroups: [plimsoll.dev]
  resources: [bundles]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [plimsoll.dev]
  resources: [brokerfleets/status, brokerclusters/status, edgebrokers/status, hardwareprofiles/status, loadbalancingsessions/status, feeds/status, channels/status]
  verbs: [update]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: [{{ include "plimsoll.fullname" . }}]
  verbs: [get]
- apiGroups: [""]
  resources: [services, configmaps, secrets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list, create, patch]
{{- if .Values.rbac.spark }}
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]  # an account may grant a driver only permissions that it has itself
  verbs: [create, get, deletecollection]
- apiGroups: [sparkoperator.k8s.io, spark.apache.org]
  resources: [sparkapplications]
  verbs: [get, create, patch, delete]
{{- end }}
{{- end -}}
