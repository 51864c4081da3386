/* A temporary folder for a test's files. */
#ifndef HTH_TESTS_TEMP_FOLDER_H
#define HTH_TESTS_TEMP_FOLDER_H

/* Make one; the answer is its path, static storage. A test program has one at a time. */
const char *temp_folder_make(void);

/* "FOLDER/NAME"; static storage, good until a few calls later. */
const char *temp_path(const char *name);

/* Delete it with the files and empty folders in it. */
void temp_folder_remove(void);

#endif
