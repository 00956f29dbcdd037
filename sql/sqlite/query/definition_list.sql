select NAME, VERSION, DIGEST, KIND, TITLE, PUBLISHED_ON_UTC, null, null from WF_DEFINITIONS
where (NAME, VERSION) > (?, ?) order by NAME, VERSION limit ?
