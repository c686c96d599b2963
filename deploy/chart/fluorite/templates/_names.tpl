{{- define "fluorite.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "fluorite.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "fluorite.name" .) "default" .Values.serviceAccount.create) -}}
{{- end }}

{{- define "fluorite.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* What Services and policies find the pods by; must never change for a release. */}}
{{- define "fluorite.selector" -}}
app: {{ include "fluorite.name" . }}
{{- end }}

{{/* The labels of Flux's installations, by which `flux check` and `flux logs` find what belongs to one. */}}
{{- define "fluorite.labels" -}}
app.kubernetes.io/instance: {{ .Release.Namespace }}
app.kubernetes.io/part-of: flux
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
