select NAME, VERSION, DIGEST, KIND, TITLE, PUBLISHED_ON_UTC, ORDINAL from WF_DEFINITIONS
where (NAME, VERSION) > (?, ?) and (NAME like 'policy:%') = ? order by NAME, VERSION limit ?
